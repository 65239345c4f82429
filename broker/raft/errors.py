"""Errors of the metadata quorum.

QuorumError
├── NotLeaderError           this node does not lead the quorum (any more)
├── IllegalTransitionError   a bug: a state change that the table does not know, with its story
└── CommittedTruncationError a leader asks to drop committed records: the quorum has lost data
"""


class QuorumError(Exception):
    """Any error of the metadata quorum."""


class NotLeaderError(QuorumError):
    """This node does not lead the quorum, or stopped leading before the records committed."""

    def __init__(self, leader_id: int | None) -> None:
        super().__init__(f"not the leader of the metadata quorum; it is {leader_id}")
        self.leader_id = leader_id


class IllegalTransitionError(QuorumError):
    """A transition that is not in the table; carries the events that led here."""


class CommittedTruncationError(QuorumError):
    """Truncation below the high watermark."""
