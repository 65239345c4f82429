"""Nothing destructive without typing its name; what may be changed is judged by
``control.operations.operation_session``, of the cluster that is meant, however it was named."""

import sys

from control.model.watched_cluster import Site, WatchedCluster, is_of_any
from control.operations.catalogue.operation import Operation
from control.operations.errors import NotConfirmedError, ReadOnlyError
from control.operations.permission import check_typed, check_writable
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import settings_with, target_with
from partiscope.cli.shared.streams import is_piped
from partiscope.identity import cluster_by_name, cluster_of_move
from partiscope.settings import load_settings


def require_change(bootstrap: str | None) -> None:
    """Refuse to change a read-only cluster, and a production cluster that was not named.

    Raises:
        CommandError: status 3.
        KafkaPortError: only the cluster itself could say which it is, and it does not answer.
    """
    settings = settings_with(bootstrap=bootstrap)
    if settings.bootstrap is not None:  # what is known by its name needs no answer
        known = cluster_by_name(settings, settings.bootstrap)
        _judge(known, bootstrap, known.word_to_type())
    watched = target_with(bootstrap=bootstrap).watched
    _judge(watched, bootstrap, watched.word_to_type())


def require_control(
    asked: Operation, site: Site, named: str | None, *, is_dry_run: bool = False
) -> WatchedCluster:
    """As ``require_change``, of an act on a reassignment, which need not be about the usual
    cluster: what runs on a bus may be about any cluster that shares it. Answers which it is;
    a dry run changes nothing there.

    Raises:
        CommandError: status 3; status 2 where another cluster was named.
    """
    settings = settings_with(bootstrap=named)
    watched = cluster_of_move(settings, *site)
    is_it = named in (None, watched.name)
    if named is not None and not is_it:
        is_it = is_of_any(settings.cluster_at(named).bootstrap, [site.bootstrap])
    if not is_it:
        raise CommandError(f"it is about {watched.name}, not about {named}", Exit.WRONG_USE)
    if not is_dry_run:
        _judge(watched, named, asked.word(watched))
    return watched


def _judge(watched: WatchedCluster, named: str | None, word: str) -> None:
    """By the word that was typed: the cluster's name in the settings, and no other way to say it.

    Raises:
        CommandError: status 3.
    """
    name = watched.name or watched.bootstrap
    try:
        check_writable(watched, "the change")
        check_typed("the change", typed=named or "", word=word)
    except ReadOnlyError as error:
        whose = "this installation" if load_settings().read_only else name
        raise CommandError(
            f"{whose} is read-only (setting `read_only`); nothing was changed", Exit.REFUSED
        ) from error
    except NotConfirmedError as error:
        called = "" if named in (None, name) else f"{named} is {name}: "
        raise CommandError(
            f"{called}{name} is a production cluster; nothing was changed. "
            f"Name it to change it: --cluster {name}",
            Exit.REFUSED,
        ) from error


def require_typed(name: str, what: str, *, is_confirmed: bool) -> None:
    """Have the operator type ``name``, unless ``--yes`` was given.

    Raises:
        CommandError: status 3; another word was typed, or nobody is there to type.
    """
    if is_confirmed:
        return
    if is_piped():
        raise CommandError(f"{what}. Nobody can be asked here: add --yes to go on", Exit.REFUSED)
    sys.stderr.write(f"{what}. Type {name} to go on: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != name:
        raise CommandError("another word was typed; nothing was changed", Exit.REFUSED)
