"""Nothing destructive without typing its name, and nothing at all in read-only mode."""

import sys

from control.model.fleet import is_of_any
from partiscope.cli.exits import CommandError, Exit
from partiscope.cli.options import settings_with
from partiscope.settings import NamedCluster, Settings, load_settings


def require_writable(bootstrap: str | None = None) -> Settings:
    """Refuse to change anything where the settings say read-only, of the cluster or of all.

    Raises:
        CommandError: status 3.
    """
    settings = settings_with(bootstrap=bootstrap)
    if settings.read_only:
        raise _read_only(str(settings.bootstrap))
    return settings


def _read_only(name: str) -> CommandError:
    whose = "this installation" if load_settings().read_only else name
    return CommandError(
        f"{whose} is read-only (setting `read_only`); nothing was changed", Exit.REFUSED
    )


def require_change(bootstrap: str | None) -> None:
    """As ``require_writable``; a production cluster must be named, not just be the usual one.

    Raises:
        CommandError: status 3.
    """
    settings = require_writable(bootstrap)
    watched = settings.watched()
    if bootstrap is None and watched is not None and watched.production:
        raise _unnamed(str(settings.bootstrap))


def require_change_of(address: str, named: str | None) -> None:
    """As ``require_change``, of the cluster at ``address``, which need not be the usual one: what
    runs on a bus may be about any cluster that shares it.

    Raises:
        CommandError: status 3; status 2 where another cluster was named.
    """
    settings = settings_with(bootstrap=named)
    cluster = settings.cluster_at(address)
    name = next((n for n, it in settings.clusters.items() if is_at(it, address)), address)
    if cluster.read_only or load_settings().read_only:
        raise _read_only(name)
    if named is None and cluster.production:
        raise _unnamed(name)
    if named is not None and not is_at(settings.cluster_at(named), address):
        raise CommandError(f"it is about {name}, not about {named}", Exit.WRONG_USE)


def is_at(cluster: NamedCluster, address: str) -> bool:
    """Whether a cluster's addresses and these have one in common."""
    return is_of_any(address, [cluster.bootstrap])


def _unnamed(name: str) -> CommandError:
    return CommandError(
        f"{name} is a production cluster; nothing was changed. "
        f"Name it to change it: --cluster {name}",
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
