"""Lines of the produce view: limits of the topic, the spread of keys, where sent messages are."""

from collections.abc import Mapping, Sequence

from rich.text import Text
from textual import work
from textual.widgets import Static

from control.kafka.errors import KafkaPortError, RecordTooLargeError
from control.lab.session import KeyAndValue, ProduceProgress
from control.operations.catalogue.produce import PRODUCE, Produce
from control.operations.errors import OperationError
from control.operations.session import OperationSession
from control.views.key_spread import keys_spread, spread_heads, spread_rows, spread_words
from control.views.sent_messages import sent_rows
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.rows import Row


class LimitsLine(Static):
    """The limits of the topic, or why it would refuse the first record."""

    @work(exclusive=True)
    async def judge(self, session: OperationSession, values: Mapping[str, str]) -> None:
        """Ask for the limits. A partition that is not there is told elsewhere."""
        told: str | Text = ""
        try:
            told = await session.limits(Produce.of(PRODUCE.parse(values)))
        except RecordTooLargeError as error:
            told = Text(f"✖ {error}; {error.next_step}", style="bold red")
        except (KafkaPortError, OperationError):
            told = ""
        self.update(told)


class SentMessages(Static):
    """Follows the messages of the last run to segments, replicas and groups."""

    _topic = ""
    _progress: ProduceProgress | None = None

    def forget(self) -> None:
        """A new run begins."""
        self._progress = None
        self.update("")

    def follow(self, topic: str, progress: ProduceProgress, snapshot: OperatorSnapshot) -> None:
        """Follow the messages of a run that has ended."""
        self._topic, self._progress = topic, progress
        self.show(snapshot)

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Show where they are now."""
        if self._progress is None:
            return
        ranges = {
            number: (self._progress.per_partition[number], first, last)
            for number, (first, last) in self._progress.offsets.items()
        }
        self.update(Text("\n".join(map(_line, sent_rows(snapshot, self._topic, ranges)))))


def spread_text(partitions: int, key: str, then: str, records: Sequence[KeyAndValue]) -> str:
    """Where many keys land, as lines of equal columns.

    :raises OperationError: a key or a number that cannot be read.
    """
    found = keys_spread(partitions, key, then, records)
    if not found:
        return "choose a topic to see where keys land"
    rows = [spread_heads(found), *spread_rows(found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.rjust, row, widths)) for row in rows]
    return "\n".join([*map(spread_words, found), "", *lines])


def _line(row: Row) -> str:
    """``partition 3 @ 12 – 40  segment 0  replicas 101 ✔ · 102 ✔  groups billing to 20``."""
    names = ("segment", "replicas", "groups")
    told = "  ".join(f"{name} {row.cell(name).text}" for name in names)
    return f"partition {row.cell('partition').text} @ {row.cell('offsets').text}  {told}"
