"""Refusals of the controller, in Kafka's words; handlers map the classes to error codes.

ControllerError
├── NotControllerError               this node is not the active controller (any more)
├── UnreplayableError                records that no node could replay: nothing was appended
├── ControllerUnavailableError       no active controller was found in time
├── topics: TopicAuthorizationError, InvalidTopicError, TopicExistsError, UnknownTopicError,
│           UnknownTopicIdError, InvalidPartitionsError, InvalidReplicationFactorError,
│           InvalidReplicaAssignmentError, PolicyViolationError, TopicDeletionDisabledError
├── rights: ClusterAuthorizationError, GroupAuthorizationError
├── configs: InvalidConfigError, InvalidConfigRequestError
├── users: DuplicateResourceError, ResourceNotFoundError, UnacceptableCredentialError,
│          UnsupportedMechanismError
├── brokers: InvalidRegistrationError, DuplicateBrokerError, StaleBrokerEpochError,
│            BrokerNotRegisteredError, InconsistentClusterError
├── ISR: FencedLeaderEpochError, NewLeaderElectedError, InvalidUpdateVersionError,
│        IneligibleReplicaError, OperationNotAttemptedError, InvalidIsrError
├── elections: ElectionNotNeededError, PreferredLeaderNotAvailableError,
│              EligibleLeadersNotAvailableError
└── reassignment: NoReassignmentInProgressError
"""


class ControllerError(Exception):
    """Any refusal; its text is shown to the client."""

    @property
    def reason(self) -> str:
        """The text."""
        return str(self)


class NotControllerError(ControllerError):
    """This node is not the active controller, or stopped being it before the change was safe."""


class ControllerUnavailableError(ControllerError, ConnectionError):
    """No active controller answered in time; the change may or may not have happened."""


class UnreplayableError(ControllerError):
    """Records that do not fit the image: a defect of the decision, which was not carried out."""


class TopicAuthorizationError(ControllerError):
    """A topic that no client may make, or to which whoever asks lacks a right."""


class InvalidTopicError(ControllerError):
    """A topic name that Kafka does not allow."""


class TopicExistsError(ControllerError):
    """The topic exists."""


class UnknownTopicError(ControllerError):
    """There is no such topic or partition."""


class UnknownTopicIdError(ControllerError):
    """There is no topic of that id."""


class InvalidPartitionsError(ControllerError):
    """A number of partitions that cannot be."""


class InvalidReplicationFactorError(ControllerError):
    """More replicas than brokers that could hold them, or fewer than one."""


class InvalidReplicaAssignmentError(ControllerError):
    """A manual assignment that cannot be."""


class PolicyViolationError(ControllerError):
    """A change that the cluster's policy forbids."""


class TopicDeletionDisabledError(ControllerError):
    """delete.topic.enable is false."""


class InvalidConfigError(ControllerError):
    """A config name or value that cannot be."""


class InvalidConfigRequestError(ControllerError):
    """A request about configs that makes no sense as a whole."""


class DuplicateResourceError(ControllerError):
    """One request names a user twice."""


class ResourceNotFoundError(ControllerError):
    """There is no such user."""


class UnacceptableCredentialError(ControllerError):
    """A user without a name, or too little or too much work to check the password."""


class UnsupportedMechanismError(ControllerError):
    """A SASL mechanism that nobody knows."""


class ClusterAuthorizationError(ControllerError):
    """A right to the cluster lacks."""


class GroupAuthorizationError(ControllerError):
    """A right to the group lacks."""


class ThrottlingQuotaExceededError(ControllerError):
    """The client has used up its quota for now."""


class InvalidRegistrationError(ControllerError):
    """A registration that names no broker, or no address of it."""


class DuplicateBrokerError(ControllerError):
    """Another live process registered under this broker id."""


class StaleBrokerEpochError(ControllerError):
    """The broker has registered anew since."""


class BrokerNotRegisteredError(ControllerError):
    """The broker never registered, or was unregistered."""


class InconsistentClusterError(ControllerError):
    """The broker belongs to another cluster."""


class FencedLeaderEpochError(ControllerError):
    """The partition has a later leader epoch."""


class NewLeaderElectedError(ControllerError):
    """The change was made, and it moved the leader away from the asking broker."""


class InvalidUpdateVersionError(ControllerError):
    """The partition has changed since the asker last saw it."""


class IneligibleReplicaError(ControllerError):
    """A fenced, stopping or restarted broker cannot join an ISR."""


class OperationNotAttemptedError(ControllerError):
    """Nothing was tried."""


class InvalidIsrError(ControllerError):
    """An ISR that is not part of the replicas or lacks the leader."""


class ElectionNotNeededError(ControllerError):
    """The partition has the leader that was asked for."""


class PreferredLeaderNotAvailableError(ControllerError):
    """The preferred leader is not live and in sync."""


class EligibleLeadersNotAvailableError(ControllerError):
    """No replica could lead."""


class NoReassignmentInProgressError(ControllerError):
    """Nothing to cancel."""
