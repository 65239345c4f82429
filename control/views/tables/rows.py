"""Rows of the tables that both screens show: only for the page that is on screen.

A cell has a value to sort and compare by, a text to show, and a tone for colour and shape. A
row's ``key`` identifies it from one refresh to the next (selection and scroll stay with it); its
``path`` is the view that Enter opens.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final

from control.model.status import Severity
from control.views.printable import visible

CellValue = float | int | str | None


class Tone(StrEnum):
    """The meaning of a colour, one and the same on both screens."""

    PLAIN = ""
    FINE = "fine"
    NOTICE = "notice"
    WARNING = "warning"
    CRITICAL = "critical"
    MUTED = "muted"


SHAPES: Final = {
    Tone.CRITICAL: "✖",
    Tone.WARNING: "▲",
    Tone.NOTICE: "◆",
    Tone.FINE: "✔",
    Tone.PLAIN: " ",
    Tone.MUTED: " ",
}
"""Colour never stands alone: each tone has its shape."""

TONE_OF: Final = {
    Severity.FINE: Tone.FINE,
    Severity.NOTICE: Tone.NOTICE,
    Severity.WARNING: Tone.WARNING,
    Severity.CRITICAL: Tone.CRITICAL,
}


_LOUD: Final = frozenset({Tone.WARNING, Tone.CRITICAL})
"""Tones whose shape stands before figures too; the others would only make them ragged."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of a table: value and text."""

    value: CellValue
    text: str
    tone: Tone = Tone.PLAIN

    def __post_init__(self) -> None:
        """Names in it are those that others chose; ``value`` stays as it is."""
        if not self.text.isprintable():
            object.__setattr__(self, "text", visible(self.text))

    @property
    def shape(self) -> str:
        return SHAPES[self.tone]

    def shaped(self, *, is_number: bool) -> str:
        """The text with its tone's shape before it, as tables show it."""
        shape = "" if is_number and self.tone not in _LOUD else self.shape.strip()
        return f"{shape} {self.text}" if shape else self.text

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Base of all rows; every other field is a ``Cell`` named like its column."""

    key: str
    path: str

    def cell(self, column: str) -> Cell:
        found: Cell = getattr(self, column)
        return found

    def cells(self) -> Iterator[tuple[str, Cell]]:
        for item in fields(self):
            value: Any = getattr(self, item.name)
            if isinstance(value, Cell):
                yield item.name, value


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow(Row):
    """A registered broker."""

    broker: Cell
    status: Cell
    rack: Cell
    replicas: Cell
    leaders: Cell
    size_bytes: Cell
    in_bytes: Cell
    out_bytes: Cell
    skew: Cell
    """Of bytes, against the mean of all registered brokers."""
    disk: Cell
    full_in: Cell
    """At the earliest: retention is not counted."""
    age: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow(Row):
    """A topic, summed up from its partitions."""

    topic: Cell
    status: Cell
    partitions: Cell
    replicas: Cell
    size_bytes: Cell
    in_records: Cell
    in_bytes: Cell
    out_bytes: Cell
    lag: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow(Row):
    """A partition as its leader sees it."""

    topic: Cell
    partition: Cell
    status: Cell
    leader: Cell
    replicas: Cell
    isr: Cell
    isr_short: Cell
    """For how long the ISR has been short."""
    size_bytes: Cell
    records: Cell
    segments: Cell
    in_records: Cell
    in_bytes: Cell
    out_bytes: Cell
    lag: Cell
    log_start_offset: Cell
    high_watermark: Cell
    age: Cell
    """Of the leader's figures; of a partition without one they are the last known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRow(Row):
    """One assigned replica of a partition."""

    broker: Cell
    rack: Cell
    role: Cell
    in_sync: Cell
    follower_lag: Cell
    log_end_offset: Cell
    size_bytes: Cell
    segments: Cell
    age: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow(Row):
    """A group of any type, summed up from its partitions."""

    group: Cell
    status: Cell
    lag: Cell
    lag_time: Cell
    velocity: Cell
    clears: Cell
    loses: Cell
    consumed: Cell
    members: Cell
    partitions: Cell
    topics: Cell
    type: Cell
    state: Cell
    epoch: Cell
    """Of the group; while a rebalance is under way, that of its assignment as well."""
    assignor: Cell
    rests_on: Cell
    """Of how many partitions a verdict is known."""
    status_unknown_because: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPartitionRow(Row):
    """A partition as a group reads it."""

    group: Cell
    topic: Cell
    partition: Cell
    status: Cell
    lag: Cell
    readable: Cell
    """Records that are there to read; of what has no commit all that the log holds."""
    lag_time: Cell
    velocity: Cell
    clears: Cell
    loses: Cell
    committed: Cell
    end: Cell
    consumed: Cell
    member: Cell
    stuck: Cell
    leader: Cell
    status_unknown_because: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRow(Row):
    """One log segment of a partition's leader."""

    number: Cell
    base_offset: Cell
    size_bytes: Cell
    state: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow(Row):
    """A finding in words."""

    severity: Cell
    label: Cell
    title: Cell
    reason: Cell
    since: Cell
    next_step: Cell
    operation: Cell
    consequences: tuple["FindingRow", ...] = ()
    """What it explains."""
