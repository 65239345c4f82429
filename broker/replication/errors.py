"""Refusals of replication; handlers map these to Kafka's error codes.

ReplicationError
├── UnknownPartitionError           no such topic or partition on this node
├── UnknownTopicIdError             no such topic id on this node
├── NotLeaderError                  another replica leads, or none
├── FencedLeaderEpochError          the client knows an older leader epoch than we
├── UnknownLeaderEpochError         the client knows a newer leader epoch than we
├── NotEnoughReplicasError          ISR below min.insync.replicas; nothing was appended
├── NotEnoughReplicasAfterAppendError   appended, then the ISR fell below min.insync.replicas
├── AppendTimedOutError             appended, but not acknowledged in time
├── InvalidRequiredAcksError        acks is none of -1, 0, 1
├── DeletionForbiddenError          the topic is compacted and never deleted from
├── FetchSessionIdNotFoundError     the leader has dropped the session (or restarted)
└── InvalidFetchSessionEpochError   a request of the session was lost
"""


class ReplicationError(Exception):
    """Base of everything this package raises or hands to `on_done`."""


class UnknownPartitionError(ReplicationError):
    """There is no such topic or partition on this node."""


class UnknownTopicIdError(ReplicationError):
    """There is no topic with this id on this node."""


class NotLeaderError(ReplicationError):
    """This node does not lead the partition."""


class FencedLeaderEpochError(ReplicationError):
    """The request carries an older leader epoch."""


class UnknownLeaderEpochError(ReplicationError):
    """The request carries a newer leader epoch: our metadata is behind."""


class NotEnoughReplicasError(ReplicationError):
    """The ISR is smaller than min.insync.replicas; nothing was appended."""


class NotEnoughReplicasAfterAppendError(ReplicationError):
    """The records are in the log, but the ISR has fallen below min.insync.replicas since."""


class AppendTimedOutError(ReplicationError):
    """The records are in the log, but were not acknowledged in time."""


class InvalidRequiredAcksError(ReplicationError):
    """acks must be -1, 0 or 1."""


class DeletionForbiddenError(ReplicationError):
    """cleanup.policy is compact alone: the newest record of each key stays."""


class FetchSessionIdNotFoundError(ReplicationError):
    """There is no such fetch session."""


class InvalidFetchSessionEpochError(ReplicationError):
    """The request is not the next one of its fetch session."""


class IllegalTransitionError(AssertionError):
    """A bug: an event that the partition's role cannot take; carries the partition's story."""
