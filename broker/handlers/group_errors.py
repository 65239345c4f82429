"""The group coordinator's verdicts as the numbers of the wire."""

from kio.schema.errors import ErrorCode

from broker.coordinator.errors import CoordinatorError


def to_error_code(error: CoordinatorError) -> ErrorCode:
    """The Kafka error code of the same name."""
    return ErrorCode[error.value]
