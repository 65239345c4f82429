"""Refusals of a coordinator, in Kafka's names.

Answers carry a `CoordinatorError`, NONE when all is well. Exceptions exist only for what is not an
answer to a client:

GroupsError
├── RecordFormatError        a key or value of __consumer_offsets that cannot be read
└── IllegalTransitionError   a bug: a state machine was asked for a step its table forbids
"""

from enum import StrEnum

from kio.schema.errors import ErrorCode


class CoordinatorError(StrEnum):
    """Verdicts on a request; each value is the name of a Kafka error code."""

    NONE = "none"
    UNKNOWN_SERVER_ERROR = "unknown_server_error"
    UNKNOWN_TOPIC_OR_PARTITION = "unknown_topic_or_partition"
    OFFSET_METADATA_TOO_LARGE = "offset_metadata_too_large"
    COORDINATOR_LOAD_IN_PROGRESS = "coordinator_load_in_progress"
    COORDINATOR_NOT_AVAILABLE = "coordinator_not_available"
    NOT_COORDINATOR = "not_coordinator"
    ILLEGAL_GENERATION = "illegal_generation"
    INCONSISTENT_GROUP_PROTOCOL = "inconsistent_group_protocol"
    INVALID_GROUP_ID = "invalid_group_id"
    UNKNOWN_MEMBER_ID = "unknown_member_id"
    INVALID_SESSION_TIMEOUT = "invalid_session_timeout"
    REBALANCE_IN_PROGRESS = "rebalance_in_progress"
    INVALID_COMMIT_OFFSET_SIZE = "invalid_commit_offset_size"
    INVALID_REQUEST = "invalid_request"
    NON_EMPTY_GROUP = "non_empty_group"
    GROUP_ID_NOT_FOUND = "group_id_not_found"
    MEMBER_ID_REQUIRED = "member_id_required"
    GROUP_MAX_SIZE_REACHED = "group_max_size_reached"
    FENCED_INSTANCE_ID = "fenced_instance_id"
    GROUP_SUBSCRIBED_TO_TOPIC = "group_subscribed_to_topic"
    UNKNOWN_TOPIC_ID = "unknown_topic_id"
    FENCED_MEMBER_EPOCH = "fenced_member_epoch"
    STALE_MEMBER_EPOCH = "stale_member_epoch"
    UNRELEASED_INSTANCE_ID = "unreleased_instance_id"
    UNSUPPORTED_ASSIGNOR = "unsupported_assignor"
    INVALID_REGULAR_EXPRESSION = "invalid_regular_expression"
    UNSTABLE_OFFSET_COMMIT = "unstable_offset_commit"
    NOT_ENOUGH_REPLICAS = "not_enough_replicas"
    OPERATION_NOT_ATTEMPTED = "operation_not_attempted"
    INVALID_PRODUCER_EPOCH = "invalid_producer_epoch"
    INVALID_PRODUCER_ID_MAPPING = "invalid_producer_id_mapping"
    INVALID_TRANSACTION_TIMEOUT = "invalid_transaction_timeout"
    INVALID_TXN_STATE = "invalid_txn_state"
    CONCURRENT_TRANSACTIONS = "concurrent_transactions"
    PRODUCER_FENCED = "producer_fenced"
    TRANSACTIONAL_ID_NOT_FOUND = "transactional_id_not_found"
    TRANSACTION_ABORTABLE = "transaction_abortable"
    TOPIC_AUTHORIZATION_FAILED = "topic_authorization_failed"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = "transactional_id_authorization_failed"

    @property
    def code(self) -> ErrorCode:
        """The number of the wire."""
        return ErrorCode[self.value]


class GroupsError(Exception):
    """Base of what this room raises."""


class RecordFormatError(GroupsError):
    """A record of __consumer_offsets, or a consumer's metadata, that does not follow its schema."""


class IllegalTransitionError(GroupsError):
    """A step that the transition table forbids; the message tells the group's story."""
