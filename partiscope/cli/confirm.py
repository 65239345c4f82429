"""Nothing destructive without typing its name, and nothing at all in read-only mode."""

import sys

from partiscope.cli.exits import CommandError, Exit
from partiscope.cli.options import settings_with
from partiscope.settings import Settings, load_settings


def require_writable(bootstrap: str | None = None) -> Settings:
    """Refuse to change anything where the settings say read-only, of the cluster or of all.

    Raises:
        CommandError: status 3.
    """
    settings = settings_with(bootstrap=bootstrap)
    if settings.read_only:
        whose = "this installation" if load_settings().read_only else str(settings.bootstrap)
        raise CommandError(
            f"{whose} is read-only (setting `read_only`); nothing was changed", Exit.REFUSED
        )
    return settings


def require_change(bootstrap: str | None) -> None:
    """As ``require_writable``; a production cluster must be named, not just be the usual one.

    Raises:
        CommandError: status 3.
    """
    settings = require_writable(bootstrap)
    watched = settings.watched()
    if bootstrap is None and watched is not None and watched.production:
        raise CommandError(
            f"{settings.bootstrap} is a production cluster; nothing was changed. "
            f"Name it to change it: --cluster {settings.bootstrap}",
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
        raise CommandError(f"{what}. Nobody can be asked here: add --yes to go on", Exit.REFUSED)
    sys.stderr.write(f"{what}. Type {name} to go on: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != name:
        raise CommandError("another word was typed; nothing was changed", Exit.REFUSED)
