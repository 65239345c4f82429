"""Messages from the feed, and between screens and app."""

from textual.message import Message

from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.snapshot import OperatorSnapshot


class SnapshotArrived(Message):
    """A newer snapshot is there; ``feed`` tells its cluster."""

    def __init__(self, snapshot: OperatorSnapshot, feed: SnapshotFeed) -> None:
        super().__init__()
        self.snapshot, self.feed = snapshot, feed


class PathChosen(Message):
    """Somebody wants to see another view."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
