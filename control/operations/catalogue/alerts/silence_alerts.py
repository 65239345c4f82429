"""Silence alerts: those that match are not told for a while."""

import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from control.alerts.silences import ANY, SILENCE_MS_MAX, Matcher, Silence
from control.kafka.acl import Lacking
from control.model.moments import TimeError, iso_text, parse_moment
from control.model.units import duration_text, parse_duration
from control.operations.bus.alert_records import AlertsTopic
from control.operations.bus.client import whoami
from control.operations.catalogue.fields import REASON
from control.operations.catalogue.forms import Confirmation, FormField, OperationForm
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext

TEXT_CHARACTERS_MAX: Final = 4_096
LATE_MS_MAX: Final = 60_000
"""A begin that is past by no more has passed while the form was filled in."""
DAY_MS: Final = 86_400_000
CLOCK: Final = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")


def _duration_problem(text: str) -> str | None:
    found = parse_duration(text)
    if found is None or not 1 <= found <= SILENCE_MS_MAX:
        return "a time such as 30m, 2h or 3d, at most 366d"
    return None


def _begin_problem(text: str) -> str | None:
    try:
        is_past = begin_ms(text, _now_ms()) < _now_ms() - LATE_MS_MAX
    except TimeError as error:
        return str(error)
    return "a time to come, such as 22:00 or 2026-12-05T22:00" if is_past else None


def begin_ms(text: str, now_ms: int) -> int:
    """Milliseconds since the epoch of a begin as it is typed; a clock time is the next such one.

    :raises TimeError: it is no time.
    """
    if not text:
        return now_ms
    at_ms = parse_moment(text, now_ms=now_ms)
    return at_ms + DAY_MS if CLOCK.fullmatch(text) and at_ms < now_ms - LATE_MS_MAX else at_ms


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _glob_problem(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return "it is not UTF-8"
    return (
        f"at most {TEXT_CHARACTERS_MAX:,} characters" if len(text) > TEXT_CHARACTERS_MAX else None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceAlerts(Operation):
    """Writes a silence to the bus; the process that delivers alerts heeds it within seconds."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="silence",
        key="S",
        title="Silence alerts",
        help="alerts that match are not told for a while",
        submit_label="Silence",
        confirmation=Confirmation.PREVIEW,
        fields=(
            FormField(
                name="rule", label="Rule", default=ANY, is_required=True,
                help="its name, or a glob such as lag*", check=_glob_problem,
            ),
            FormField(
                name="subject", label="Subject", default=ANY, is_required=True,
                help="a name, or a glob such as orders-*", check=_glob_problem,
            ),
            FormField(
                name="cluster", label="Cluster", default=ANY, is_required=True,
                help="its name, or a glob", check=_glob_problem,
            ),
            FormField(
                name="begins", label="From", help="empty: now; 22:00 or 2026-12-05T22:00",
                check=_begin_problem,
            ),
            FormField(
                name="lasts", label="For", default="1h", is_required=True, help="30m, 2h, 3d",
                check=_duration_problem,
            ),
            REASON,
        ),
    )  # fmt: skip
    RIGHTS: ClassVar[Lacking] = ()
    """It changes nothing on the watched cluster."""

    matcher: Matcher
    lasts: str
    from_ms: int | None = None
    """None: it begins as soon as it is done."""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        names = {it: fields[it] for it in ("rule", "subject", "cluster")}
        begins = fields["begins"]
        return cls(
            matcher=Matcher(**names),
            lasts=fields["lasts"],
            from_ms=begin_ms(begins, _now_ms()) if begins else None,
            reason=fields["reason"],
        )

    @property
    def what(self) -> str:
        """For the journal."""
        return f"silence {self.matcher.words}"

    @property
    def lasts_ms(self) -> int:
        """``lasts`` as a number."""
        return round(parse_duration(self.lasts) or 0)

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """The silence, and the open alerts that it covers now.

        :raises KafkaPortError: the bus does not answer.
        """
        known = (await AlertsTopic(context.moves.bus).read()).alerts.values()
        covered = [it for it in known if it.is_open and self.matcher.fits(it)]
        lasts = duration_text(self.lasts_ms)
        begins = "" if self.from_ms is None else f" from {iso_text(self.from_ms)}"
        words = f"{self.matcher.words}: not told for {lasts}{begins}"
        lines = [
            Change(it.subject, str(it.status), "silenced", f"{it.rule}, {it.subject}: {it.status}")
            for it in covered
        ]
        notes = () if covered else ("no open alert matches now",)
        return Effect(
            command=self, changes=(Change("silence", None, lasts, words), *lines), notes=notes
        )

    async def perform(self, context: OperationContext) -> Done:
        """Write the silence.

        :raises InvalidInputError: there are too many already.
        :raises KafkaPortError: the bus does not answer.
        """
        from_ms = _now_ms() if self.from_ms is None else self.from_ms
        topic = AlertsTopic(context.moves.bus)
        await topic.ensure()
        made = Silence(
            id=f"si-{secrets.token_hex(4)}",
            matcher=self.matcher,
            from_ms=from_ms,
            until_ms=from_ms + self.lasts_ms,
            who=whoami(),
            why=self.reason,
        )
        await topic.save_silence(made)
        return Done(words=f"{made.id} silences {self.matcher.words}", view="alerts")
