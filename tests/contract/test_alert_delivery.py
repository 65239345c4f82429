"""Alerts of a process of its own, over real sockets: fired, resolved, silenced, across kill -9."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pytest

from control.alerts.silences import Matcher
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model.watched_cluster import WatchedCluster
from control.operations.bus.alert_records import AlertsTopic
from control.operations.bus.topics import Bus
from control.operations.catalogue.alerts.end_silence import EndSilence
from control.operations.catalogue.alerts.silence_alerts import SilenceAlerts
from control.operations.errors import InvalidInputError, ReadOnlyError
from control.operations.operation_session import OperationSession
from tests.support.alert_receivers import MailServer, WebhookServer
from tests.support.cluster import LocalCluster
from tests.support.patience import WAIT_S
from tests.support.settle import until, wait_until
from tests.support.store_builder import StoreBuilder
from tests.unit.control import clusters

LAGGING: Final = 5_000
SETTINGS: Final = """
[alerts]
page = "http://page.example:8050"
group_wait = "0s"
repeat = "{repeat}"
resolve_after = "1s"
[alerts.receivers.hook]
kind = "webhook"
url = "{hook}"
[alerts.receivers.mail]
kind = "email"
host = "127.0.0.1"
port = {mail}
security = "none"
sender = "partiscope@example.org"
to = ["ops@example.org"]
[alerts.receivers.script]
kind = "command"
command = ["tee", "-a", "{file}"]
[[alerts.rules]]
name = "lag"
when = "groups: lag>1000"
severity = "critical"
"""


@dataclass
class LiveStore:
    """A store that is written anew all the time, with one group of this lag; a context manager."""

    folder: Path
    cluster: str
    lag: int | None = 0
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._builder = StoreBuilder(self.folder)
        self._write()
        self._thread = threading.Thread(target=self._go_on)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        assert self._thread is not None
        self._thread.join()

    def _go_on(self) -> None:
        while not self._ended.wait(0.3):
            self._write()

    def _write(self) -> None:
        known = {"cluster": self.cluster}
        now_ms = time.time_ns() // 1_000_000
        read = known | {"read_ms": now_ms}
        end = 100_000
        committed = None if self.lag is None else end - self.lag
        commit = {"committed_offset": committed, "lag": self.lag, "end_offset": end}
        self._builder.write(
            {
                "brokers": [clusters.broker(1, **read, sampled_ms=now_ms)],
                "partitions": [clusters.partition("orders", 0, [1], **read, high_watermark=end)],
                "groups": [clusters.group("billing", **read)],
                "commits": [
                    clusters.commit(
                        "billing", "orders", 0, **read, **commit, commit_ms=now_ms,
                        end_read_ms=now_ms,
                    )
                ],
            }
        )  # fmt: skip


@dataclass
class Site:
    """A store, receivers, and the process that delivers."""

    folder: Path
    bus: str
    store: LiveStore
    hook: WebhookServer
    mail: MailServer
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def scripts(self) -> list[Any]:
        """Documents that the command got."""
        file = self.folder / "script.jsonl"
        text = file.read_text().replace("}{", "}\n{") if file.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    @property
    def log(self) -> str:
        return (self.folder / "alerts.log").read_text()

    def start(self) -> subprocess.Popen[bytes]:
        """One more process."""
        with (self.folder / "alerts.log").open("ab") as log:
            process = subprocess.Popen(
                (sys.executable, "-m", "partiscope", "alerts", "run", *self._flags),
                stdout=log, stderr=log, cwd=self.folder,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def kill(self) -> None:
        """As the kernel does where memory lacks."""
        self.processes[-1].kill()
        self.processes[-1].wait()

    def run(self, *words: str) -> Any:
        """A command; its JSON document, or what it wrote."""
        flags = ("--bus", self.bus, "--bootstrap", self.bus)
        done = subprocess.run(
            (sys.executable, "-m", "partiscope", "alerts", *words, *flags),
            cwd=self.folder, capture_output=True, text=True, check=False, timeout=WAIT_S,
        )  # fmt: skip
        return json.loads(done.stdout) if "--json" in words else done.stdout + done.stderr

    @property
    def _flags(self) -> tuple[str, ...]:
        store = str(self.store.folder)
        return ("--bus", self.bus, "--bootstrap", self.bus, "--store", store)

    def statuses(self, taken: list[Any]) -> list[str]:
        """What these documents say, the second copy of a telling left out."""
        told = {it["alerts"][0]["telling_id"]: it["status"] for it in taken}
        return list(told.values())

    def wait_for(self, what: list[str], taken: list[Any] | None = None) -> None:
        documents = self.hook.taken if taken is None else taken
        wait_until(
            lambda: self.statuses(documents) == what, f"the hook is told {what}", story=self._story
        )

    def _story(self) -> str:
        return f"{self.log}\n{self.hook.taken}"


async def _prepared(bus: str) -> str:
    """The cluster's id; what tests before have left in the alerts topic is dropped."""
    async with Bus(bus) as opened:
        topic = AlertsTopic(opened)
        await topic.ensure()
        left = await topic.read()
        for episode in left.alerts:
            await topic.drop_alert(episode)
        for silence in left.silences:
            await topic.drop_silence(silence)
    async with KafkaAdmin.to(bus) as admin:
        return (await admin.describe_cluster()).cluster_id


@contextmanager
def _site(folder: Path, bus: str, *, repeat: str = "never") -> Iterator[Site]:
    store = LiveStore(folder / "store", asyncio.run(_prepared(bus)))
    with store, WebhookServer() as hook, MailServer() as mail:
        text = SETTINGS.format(
            hook=hook.url, mail=mail.port, file=folder / "script.jsonl", repeat=repeat
        )
        (folder / "partiscope.toml").write_text(text)
        site = Site(folder=folder, bus=bus, store=store, hook=hook, mail=mail)
        try:
            yield site
        finally:
            for process in site.processes:
                process.terminate()
            for process in site.processes:
                process.wait(WAIT_S)


@pytest.fixture
def site(tmp_path: Path, our_cluster: LocalCluster) -> Iterator[Site]:
    with _site(tmp_path, our_cluster.bootstrap) as made:
        yield made


def test_an_alert_reaches_every_receiver_and_its_end_as_well(site: Site) -> None:
    site.store.lag = LAGGING
    site.start()
    site.wait_for(["firing"])
    wait_until(lambda: len(site.mail.taken) == 1 and len(site.scripts) == 1, "the others get it")
    document = site.hook.taken[0]
    (alert,) = document["alerts"]
    assert alert["subject"] == "billing"
    assert "5,000" in alert["words"]
    assert alert["link"] == "http://page.example:8050/groups/billing"
    assert str(site.mail.taken[0]["Message-ID"]) == f"<{_mail_id(site)}@partiscope>"
    assert "lag, billing" in str(site.mail.taken[0]["Subject"])
    told = site.run("list", "--json")
    assert [it["told"] for it in told["alerts"]] == ["hook, mail, script"]
    assert told["problems"] == []
    site.store.lag = 0
    site.wait_for(["firing", "resolved"])
    wait_until(lambda: len(site.mail.taken) == 2 and len(site.scripts) == 2, "they hear the end")
    wait_until(lambda: not site.run("list", "--json")["alerts"], "it is forgotten")


def _mail_id(site: Site) -> str:
    return str(site.mail.taken[0]["X-Partiscope-Message"])


def test_unknown_lag_neither_resolves_nor_fires(site: Site) -> None:
    site.store.lag = LAGGING
    site.start()
    site.wait_for(["firing"])
    site.store.lag = None
    time.sleep(4)
    assert site.statuses(site.hook.taken) == ["firing"]
    site.store.lag = 0
    site.wait_for(["firing", "resolved"])


def test_kill_9_loses_nothing(site: Site) -> None:
    """Killed while a receiver refuses, and again after it took the message, before that could be
    written down: the second copy carries the same id."""
    site.hook.refuses_with = 503
    site.store.lag = LAGGING
    site.start()
    wait_until(lambda: len(site.mail.taken) == 1, "the mail is there", story=lambda: site.log)
    wait_until(lambda: "503" in site.log, "the hook refuses", story=lambda: site.log)
    assert "s3cret" not in site.log
    site.kill()
    site.hook.refuses_with = 0
    site.hook.before_answer = lambda: os.kill(site.processes[-1].pid, signal.SIGKILL)
    site.start()
    site.wait_for(["firing"])
    site.processes[-1].wait()
    site.hook.before_answer = lambda: None
    site.start()
    wait_until(lambda: len(site.hook.taken) == 2, "it comes again", story=lambda: site.log)
    assert site.hook.taken[0]["id"] == site.hook.taken[1]["id"]
    site.kill()
    site.store.lag = 0
    site.start()
    site.wait_for(["firing", "resolved"])
    wait_until(
        lambda: len({str(it["Message-ID"]) for it in site.mail.taken}) == 2,
        "mail tells the alert and its end",
        story=lambda: site.log,
    )


def test_silenced_alerts_are_not_told_until_the_silence_ends(site: Site) -> None:
    made = site.run("silence", "--subject", "bill*", "--for", "1h", "--reason", "drill", "--json")
    name = made["silence"]["id"]
    site.store.lag = LAGGING
    site.start()
    wait_until(
        lambda: (
            [it["status"] for it in site.run("list", "--json")["alerts"]] == ["silenced (firing)"]
        ),
        "it fires in silence",
        story=lambda: site.log,
    )
    assert site.hook.taken == []
    assert [it["why"] for it in site.run("silences", "--json")["silences"]] == ["drill"]
    site.run("unsilence", name)
    site.wait_for(["firing"])


def test_it_is_told_again_while_it_fires(tmp_path: Path, our_cluster: LocalCluster) -> None:
    with _site(tmp_path, our_cluster.bootstrap, repeat="2s") as site:
        site.store.lag = LAGGING
        site.start()
        wait_until(lambda: len(site.hook.taken) >= 3, "repeats", story=lambda: site.log)
        assert [it["is_repeat"] for it in site.hook.taken[:3]] == [False, True, True]
        assert len({it["id"] for it in site.hook.taken[:3]}) == 3


def test_a_second_process_waits_for_its_turn(site: Site) -> None:
    site.store.lag = LAGGING
    first = site.start()
    site.wait_for(["firing"])
    site.start()
    time.sleep(3)
    assert len(site.hook.taken) == 1
    first.terminate()
    first.wait()
    site.store.lag = 0
    site.wait_for(["firing", "resolved"])


async def test_the_form_of_the_screens_silences_with_preview_and_journal(
    site: Site, our_cluster: LocalCluster
) -> None:
    watched = WatchedCluster(bootstrap=our_cluster.bootstrap)
    fields = SilenceAlerts.FORM.parse({"subject": "bill*", "lasts": "30m", "reason": "drill"})
    async with OperationSession(watched, bus=our_cluster.bootstrap, who="tester") as session:
        previewed = await session.preview(SilenceAlerts.of(fields))
        assert previewed.effect.changes[0].line == "subject bill*: not told for 30 m"
        await session.perform(previewed, typed=previewed.word)
        lines = await session.journal.lines()
    assert [it.reason for it in lines if it.what == "silence subject bill*"] == ["drill"]
    site.store.lag = LAGGING
    site.start()
    await until(
        lambda: "silenced" in str(site.run("list", "--json")["alerts"]), story=lambda: site.log
    )
    assert site.hook.taken == []
    (held,) = site.run("list", "--json")["alerts"]
    assert held["silenced"] > time.time() * 1000
    assert held["silenced_by"]
    assert held["repeats"] is None
    (lasting,) = site.run("silences", "--json")["silences"]
    async with OperationSession(watched, bus=our_cluster.bootstrap, who="tester") as session:
        with pytest.raises(InvalidInputError):
            await session.preview(EndSilence(silence="si-none", reason=""))
        previewed = await session.preview(EndSilence(silence=lasting["id"], reason="over"))
        assert previewed.effect.changes[1].line.endswith("firing")
        await session.perform(previewed, typed=previewed.word)
        lines = await session.journal.lines()
    assert [it.reason for it in lines if it.what == f"end {lasting['id']}"] == ["over"]
    site.wait_for(["firing"])
    assert site.run("silences", "--json")["silences"] == []


async def test_nothing_is_silenced_on_a_read_only_cluster(our_cluster: LocalCluster) -> None:
    watched = WatchedCluster(bootstrap=our_cluster.bootstrap, is_read_only=True)
    asked = SilenceAlerts(matcher=Matcher(rule="lag"), lasts="1h", reason="drill")
    async with OperationSession(watched, bus=our_cluster.bootstrap, who="tester") as session:
        with pytest.raises(ReadOnlyError):
            await session.preview(asked)
