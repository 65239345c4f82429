"""What travels from the feed and between screens and app."""

from textual.message import Message

from control.views.snapshot import OperatorSnapshot


class SnapshotArrived(Message):
    """A newer snapshot is there."""

    def __init__(self, snapshot: OperatorSnapshot) -> None:
        super().__init__()
        self.snapshot = snapshot


class PathChosen(Message):
    """Somebody wants to see another view."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
