"""Whether a change may be made: not where a cluster is read-only, not without the word typed.

What changes a production cluster wants the cluster's name, and what destroys wants the name of what
it destroys. What stops a reassignment wants no name: in an emergency it must be at hand.
"""

from control.model.watched_cluster import WatchedCluster
from control.operations.errors import NotConfirmedError, ReadOnlyError


def check_writable(watched: WatchedCluster, what: str) -> None:
    """:raises ReadOnlyError: nothing may be changed there."""
    if watched.is_read_only:
        raise ReadOnlyError(what)


def check_typed(what: str, *, typed: str, word: str) -> None:
    """``typed`` is what the operator has typed; ``word`` is what must be (empty: nothing).

    :raises NotConfirmedError: another word must be typed.
    """
    if word and typed != word:
        raise NotConfirmedError(what, word)
