"""Lines of the produce view: limits of the topic, the spread of keys, where sent messages are."""

from collections.abc import Mapping, Sequence

from rich.text import Text
from textual import work
from textual.widgets import Static

from control.messages.produce_session import KeyAndValue
from control.operations.operation_session import OperationSession
from control.views.messages.key_preview import NO_TOPIC
from control.views.messages.key_spread import keys_spread, spread_heads, spread_rows, spread_words
from control.views.messages.progress import limits_cell
from control.views.messages.sent import Sent
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.rows import Row
from tui.tones import cell_text


class LimitsLine(Static):
    """The limits of the topic, or why it would refuse the first record."""

    @work(exclusive=True)
    async def judge(self, session: OperationSession, values: Mapping[str, str]) -> None:
        """Ask for the limits."""
        self.update(cell_text(await limits_cell(session, values)))


class SentMessages(Static):
    """Follows the messages of the last run to segments, replicas and groups."""

    _sent: Sent | None = None

    def forget(self) -> None:
        """A new run begins."""
        self._sent = None
        self.update("")

    def follow(self, sent: Sent, snapshot: OperatorSnapshot) -> None:
        """Follow the messages of a run that has ended."""
        self._sent = sent
        self.show(snapshot)

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Show where they are now."""
        if self._sent is not None:
            lines = [*map(_line, self._sent.rows(snapshot)), self._sent.more]
            self.update(Text("\n".join(lines)))


def spread_text(partitions: int, key: str, then: str, records: Sequence[KeyAndValue]) -> str:
    """Where many keys land, as lines of equal columns.

    :raises OperationError: a key or a number that cannot be read.
    """
    found = keys_spread(partitions, key, then, records)
    if not found:
        return NO_TOPIC
    rows = [spread_heads(found), *spread_rows(found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.rjust, row, widths)) for row in rows]
    return "\n".join([*map(spread_words, found), "", *lines])


def _line(row: Row) -> str:
    """``partition 3 @ 12 – 40  segment 0  replicas 101 ✔ · 102 ✔  groups billing to 20``."""
    names = ("segment", "replicas", "groups")
    told = "  ".join(f"{name} {row.cell(name).text}" for name in names)
    return f"partition {row.cell('partition').text} @ {row.cell('offsets').text}  {told}"
