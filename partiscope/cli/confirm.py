"""Nothing destructive without typing its name, and nothing at all in read-only mode."""

import sys

from partiscope.cli.exits import CommandError, Exit
from partiscope.settings import load_settings


def require_writable() -> None:
    """Refuse to change anything where the settings say read-only.

    Raises:
        CommandError: status 3.
    """
    if load_settings().read_only:
        raise CommandError(
            "this installation is read-only (setting `read_only`); nothing was changed",
            Exit.REFUSED,
        )


def require_typed(name: str, what: str, *, is_confirmed: bool) -> None:
    """Have the operator type ``name``, unless ``--yes`` was given.

    Raises:
        CommandError: status 3; another word was typed, or nobody is there to type.
    """
    if is_confirmed:
        return
    if not sys.stdin.isatty():
        raise CommandError(f"{what} needs --yes when nobody can be asked", Exit.REFUSED)
    sys.stderr.write(f"{what}. Type {name} to go on: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != name:
        raise CommandError("another word was typed; nothing was changed", Exit.REFUSED)
