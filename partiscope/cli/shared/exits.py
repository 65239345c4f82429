"""Exit statuses: the contract with scripts. What an error of a library means is in ``failures``."""

import enum


class Exit(enum.IntEnum):
    """The contract with scripts."""

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    REFUSED = 3
    UNREACHABLE = 4
    FINDING = 5
    INTERRUPTED = 130
    TERMINATED = 143


class CommandError(Exception):
    """An error of a command that says itself which status it means."""

    def __init__(self, message: str, status: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.status = status
