"""Messages from the feed and the screens to the app, which screens do not know otherwise."""

from collections.abc import Mapping, Sequence

from textual.message import Message

from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.snapshot import OperatorSnapshot


class SnapshotArrived(Message):
    """A newer snapshot is there; ``feed`` tells its cluster."""

    def __init__(self, snapshot: OperatorSnapshot, feed: SnapshotFeed) -> None:
        super().__init__()
        self.snapshot, self.feed = snapshot, feed


class PathChosen(Message):
    """Somebody wants to see another view, on top of the present one or ``is_instead`` of it."""

    def __init__(self, path: str, *, is_instead: bool = False) -> None:
        super().__init__()
        self.path, self.is_instead = path, is_instead


class FormChosen(Message):
    """Somebody wants the dialog of an operation, filled in with ``given``; ``rows`` are the marked
    rows of the list."""

    def __init__(self, name: str, given: Mapping[str, str], rows: Sequence[str] = ()) -> None:
        super().__init__()
        self.name, self.given, self.rows = name, given, rows
