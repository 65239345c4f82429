"""Which exit status an error means, and what an operator is told of it."""

import struct

from broker.named_file import NamedFileError
from control.kafka.errors import (
    KafkaPortError,
    NoSuchNameError,
    NoSuchPartitionError,
    UnreachableError,
    UnsendableLinesError,
)
from control.model.command_line import typed
from control.operations.errors import InvalidInputError, OperationError
from control.views.next_links import explained
from partiscope.access.private_file import AccessFileError
from partiscope.bundled.founded_cluster import LayoutError
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.settings import SettingsError
from partiscope.supervisor import PartFailedError


def exit_status_of(error: Exception) -> Exit | None:
    """The status for an error that an operator can act on; None for a defect of ours."""
    match error:
        case CommandError():
            return error.status
        case SettingsError() | AccessFileError() | NamedFileError() | InvalidInputError():
            return Exit.WRONG_USE
        case NoSuchNameError() | NoSuchPartitionError() | UnsendableLinesError():
            return Exit.WRONG_USE
        case struct.error():
            return Exit.WRONG_USE
        case UnicodeEncodeError():  # only words of the command line have bytes that are no text
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
        return explained(error)
    if isinstance(error, struct.error):
        return "a number is larger than Kafka's protocol can hold: write a smaller one"
    if isinstance(error, UnicodeEncodeError):
        return f"{str(error.object)!r} has bytes that are not UTF-8: write it as UTF-8"
    if isinstance(error, OSError) and error.strerror:
        of = "" if error.filename is None else f" {error.filename}:"
        return f"the system refused:{of} {error.strerror}"
    return typed(str(error)) or type(error).__name__
