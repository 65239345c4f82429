"""The word that an operator types before a change, judged for ``OperationSession``.

What changes a production cluster wants the cluster's name, and what destroys wants the name of what
it destroys. What stops a reassignment wants no name: in an emergency it must be at hand.
"""

from typing import Final

from control.model.fleet import WatchedCluster
from control.operations.errors import NotConfirmedError, ReadOnlyError

BRAKES: Final = frozenset({"pause", "cancel", "cancel_after_wave"})
"""Acts on a running reassignment that only take load off the cluster."""


def word_for_control(watched: WatchedCluster, action: str) -> str:
    """The word for an act on a running reassignment; empty: nothing must be typed."""
    return "" if action in BRAKES else watched.word_to_type()


def check_confirmed(watched: WatchedCluster, what: str, *, typed: str, word: str) -> None:
    """``typed`` is what the operator has typed; ``word`` is what must be (empty: nothing).

    :raises ReadOnlyError: nothing may be changed there.
    :raises NotConfirmedError: another word must be typed.
    """
    if watched.is_read_only:
        raise ReadOnlyError(what)
    if word and typed != word:
        raise NotConfirmedError(what, word)
