"""Exit statuses, and which of them an error means."""

import enum

from control.kafka.errors import KafkaPortError, UnreachableError
from control.operations.errors import InvalidInputError, OperationError
from partiscope.layout import LayoutError
from partiscope.settings import SettingsError
from partiscope.supervisor import PartFailedError


class Exit(enum.IntEnum):
    """The contract with scripts."""

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    REFUSED = 3
    UNREACHABLE = 4
    CRITICAL_FINDING = 5
    INTERRUPTED = 130


class CommandError(Exception):
    """An error of a command that says itself which status it means."""

    def __init__(self, message: str, status: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.status = status


def exit_status_of(error: Exception) -> Exit | None:
    """The status for an error that an operator can act on; None for a defect of ours."""
    match error:
        case CommandError():
            return error.status
        case SettingsError() | InvalidInputError():
            return Exit.WRONG_USE
        case UnreachableError():
            return Exit.UNREACHABLE
        case OperationError():
            return Exit.REFUSED
        case LayoutError() | PartFailedError() | KafkaPortError():
            return Exit.FAILED
        case OSError():  # a disk is full, a file may not be read
            return Exit.FAILED
        case _:
            return None


def explain(error: Exception) -> str:
    """What, why, what next."""
    if isinstance(error, KafkaPortError | OperationError):
        return f"{error}. Next: {error.next_step}."
    return str(error) or type(error).__name__
