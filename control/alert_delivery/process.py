"""The process that delivers alerts: reads snapshots, keeps states on the bus, tells receivers.

A change is saved before it is told, and what a receiver has taken is saved after: a process that is
killed in between tells it once more, by the same id. While the bus is away alerts are told all the
same, for it may be the cluster that fails, and are saved once it is back.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from control.alert_delivery.evaluate import reading_of
from control.alert_delivery.lanes import Lane
from control.alert_delivery.receivers.receiver import Receiver
from control.alerts.alert import Alert
from control.alerts.machine import AlertMachine, ReceiverRules, Telling
from control.alerts.messages import NO_PAGE, Page, messages_of
from control.alerts.rules import AlertRule, RuleReport
from control.alerts.silences import MaintenanceWindow, Quiet
from control.kafka.errors import KafkaPortError
from control.operations.bus.alert_records import AlertRecords, AlertsTopic, DeliveryReport
from control.views.snapshots.snapshot import OperatorSnapshot

INTERVAL_S: Final = 1.0
LOOK_AGAIN_MS: Final = 5_000
"""A snapshot that stays is judged again so often: it may have become old."""
NEWS_S: Final = 5.0
"""So often silences are looked for."""
REPORT_S: Final = 10.0
WORDS_S: Final = 10.0
"""So often figures of open alerts are put into words; whether they match is judged each time."""
GROUP_WAIT_MS: Final = 5_000
"""Alerts of one rule that fire within this time are told together."""
ENDING_S: Final = 20.0
"""Without any rule, what is open is told as resolved within this time."""
SAVED_AT_ONCE: Final = 50
SAVE_S_MAX: Final = 3.0
"""Longer than this no telling waits until it is saved."""

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSettings:
    """Everything that settings say of alerts."""

    rules: Sequence[AlertRule] = ()
    receivers: Mapping[str, Receiver] = field(default_factory=dict)
    windows: Sequence[MaintenanceWindow] = ()
    pages: Mapping[str, Page] = field(default_factory=dict)
    """By the cluster's name."""
    group_wait_ms: int = GROUP_WAIT_MS


class Feed(Protocol):
    """Where snapshots of one cluster come from."""

    @property
    def current(self) -> OperatorSnapshot: ...


class AlertProcess:
    """Alerts of some clusters, while this process is the one that delivers them."""

    def __init__(
        self,
        settings: AlertSettings,
        feeds: Mapping[str, Feed],
        topic: AlertsTopic,
        *,
        is_owner: Callable[[], bool] = lambda: True,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._settings = settings
        self._feeds = feeds
        self._topic = topic
        self._is_owner = is_owner
        self._now_ms = now_ms
        self._records = AlertRecords()
        self._machine = AlertMachine(
            settings.rules,
            {name: ReceiverRules(refresh_ms=it.refresh_ms) for name, it in _items(settings)},
            group_wait_ms=settings.group_wait_ms,
        )
        self._lanes = {name: Lane(it, self._took, now_ms) for name, it in _items(settings)}
        self._unsaved: dict[str, None] = {}
        """Episodes that the bus does not hold as they are now, the oldest first."""
        self._saving = asyncio.Lock()
        self._judged: dict[str, tuple[OperatorSnapshot, int]] = {}
        self._due_s = {"news": 0.0, "report": 0.0}
        self._worded_s: dict[str, float] = {}
        self._bus_failure = ""

    async def load(self) -> None:
        """Go on where the process before ended.

        :raises KafkaPortError: the bus does not answer.
        """
        await self._topic.ensure()
        self._records = await self._topic.read()
        self._machine.load(self._records.alerts.values())
        self._note(self._machine.end_unwatched(self._feeds.keys(), self._now_ms()))

    async def run(self) -> None:
        """Deliver until cancelled, until another process owns the alerts, or, without any rule,
        until all that was open is told as resolved."""
        began_s = time.monotonic()
        try:
            while self._is_owner():
                await self.step()
                if not self._settings.rules:
                    is_late = time.monotonic() - began_s > ENDING_S
                    if is_late or not self._machine.alerts:
                        await self._report()
                        return
                await asyncio.sleep(INTERVAL_S)
        finally:
            for lane in self._lanes.values():
                lane.stop()

    async def step(self) -> None:
        """Look once at everything, and tell what is due."""
        await self._try_bus("news", NEWS_S, self._read_news)
        for cluster, feed in self._feeds.items():
            await self._judge(cluster, feed.current)
        await self._save()
        self._tell()
        self._note(self._machine.forget_told(self._quiet(), self._now_ms()))
        await self._save()
        await self._try_bus("report", REPORT_S, self._report)

    async def _judge(self, cluster: str, snapshot: OperatorSnapshot) -> None:
        at_ms = self._now_ms()
        last, last_ms = self._judged.get(cluster, (None, 0))
        if snapshot is last and 0 <= at_ms - last_ms < LOOK_AGAIN_MS:
            return
        self._judged[cluster] = snapshot, at_ms
        reading = await asyncio.to_thread(
            reading_of,
            snapshot,
            self._settings.rules,
            cluster=cluster,
            at_ms=at_ms,
            open_matches=self._machine.open_matches(cluster),
            keeps_words=not self._renews_words(cluster),
        )
        self._note(self._machine.handle(reading))

    def _renews_words(self, cluster: str) -> bool:
        """Whether the rows of open alerts are put into words anew."""
        now_s = time.monotonic()
        is_due = now_s - self._worded_s.get(cluster, -WORDS_S) >= WORDS_S
        if is_due:
            self._worded_s[cluster] = now_s
        return is_due

    def _quiet(self) -> Sequence[Quiet]:
        return (*self._records.silences.values(), *self._settings.windows)

    def _tell(self) -> None:
        now_ms = self._now_ms()
        due = self._machine.due(self._quiet(), now_ms)
        for name, lane in self._lanes.items():
            own = [it for it in due if it.receiver == name]
            if not own:
                lane.is_idle(now_ms)
            elif lane.is_free(now_ms):
                lane.start(
                    [
                        message
                        for cluster in dict.fromkeys(it.alert.cluster for it in own)
                        for message in messages_of(
                            [it for it in own if it.alert.cluster == cluster],
                            at_ms=now_ms,
                            page=self._settings.pages.get(cluster, NO_PAGE),
                        )
                    ]
                )

    async def _took(self, tellings: Iterable[Telling]) -> None:
        """A receiver has taken these."""
        self._note(self._machine.take(tellings, self._now_ms()))
        await self._save()

    def _note(self, changed: Iterable[Alert]) -> None:
        self._unsaved |= dict.fromkeys(it.episode for it in changed)

    async def _save(self) -> None:
        """Save what has changed; what cannot be saved now is saved later."""
        async with self._saving:
            while self._unsaved:
                some = list(self._unsaved)[:SAVED_AT_ONCE]
                for episode in some:
                    del self._unsaved[episode]
                if failure := await self._save_some(some):
                    self._unsaved = dict.fromkeys(some) | self._unsaved
                    self._note_bus(failure)
                    return
            self._note_bus("")

    async def _save_some(self, episodes: Collection[str]) -> str:
        """Why they could not all be saved; empty: they are."""
        try:
            async with asyncio.timeout(SAVE_S_MAX):
                saving = map(self._save_one, episodes)
                found = await asyncio.gather(*saving, return_exceptions=True)
        except TimeoutError:
            return "the bus does not answer in time"
        failed = [it for it in found if isinstance(it, BaseException)]
        if failed and not isinstance(failed[0], KafkaPortError):
            raise failed[0]
        return str(failed[0]) if failed else ""

    async def _save_one(self, episode: str) -> None:
        alert = self._machine.alerts.get(episode)
        if alert is None:
            await self._topic.drop_alert(episode)
        else:
            await self._topic.save_alert(alert)

    async def _read_news(self) -> None:
        await self._topic.read(self._records)
        for silence in [*self._records.silences.values()]:
            if silence.is_over(self._now_ms()):
                await self._topic.drop_silence(silence.id)

    async def _report(self) -> None:
        failing = {name: lane for name, lane in self._lanes.items() if lane.failure}
        left_out: dict[str, int] = {}
        for (rule, _), count in self._machine.left_out.items():
            if count:
                left_out[rule] = left_out.get(rule, 0) + count
        now_ms = self._now_ms()
        told = {it.rule for it in self._machine.alerts.values()}
        lasting = (it.silence_at(now_ms) for it in self._settings.windows)
        await self._topic.report(
            DeliveryReport(
                at_ms=now_ms,
                rules=len(self._settings.rules),
                failures={name: lane.failure for name, lane in failing.items()},
                failing_since_ms={name: lane.failing_since_ms for name, lane in failing.items()},
                left_out=left_out,
                open_rules={
                    it.name: RuleReport(receivers=it.receivers, repeat_ms=it.repeat_ms)
                    for it in self._settings.rules
                    if it.name in told
                },
                windows=[it for it in lasting if it is not None],
            )
        )

    async def _try_bus(self, name: str, every_s: float, ask: Callable[[], Awaitable[None]]) -> None:
        """Ask the bus where it is time; an outage of it stops nothing."""
        now_s = time.monotonic()
        if now_s < self._due_s[name]:
            return
        self._due_s[name] = now_s + every_s
        try:
            async with asyncio.timeout(every_s):
                await ask()
        except (KafkaPortError, TimeoutError) as error:
            self._note_bus(str(error) or "it does not answer in time")

    def _note_bus(self, failure: str) -> None:
        if failure and not self._bus_failure:
            _log.warning("alerts are told, and not saved: %s", failure)
        if self._bus_failure and not failure:
            _log.warning("alerts are saved again")
        self._bus_failure = failure


def _items(settings: AlertSettings) -> list[tuple[str, Receiver]]:
    return list(settings.receivers.items())
