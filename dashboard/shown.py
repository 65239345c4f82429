"""What the live blocks of a view are made of: one snapshot, and what others have asked of it.

Every callback that shows figures answers through ``answer``: it waits for the first news of a
page just opened (which come with the connection), and computes for all browsers at once.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

from dash.exceptions import PreventUpdate

from control.views.snapshot import OperatorSnapshot
from dashboard.context import Screen
from dashboard.shared import Shared, time_key

Time = dict[str, str]
"""The page's time as its link has it: ``at`` and ``range``, each may lack."""

_SHARED: Final = Shared()

_T = TypeVar("_T")


def answer(
    screen: Screen,
    tick: Any,
    time: Time | None,
    key: Hashable,
    build: Callable[[OperatorSnapshot], _T],
) -> _T:
    """What ``build`` makes of the shown snapshot, made once for all who ask by this ``key``.

    Raises:
        PreventUpdate: the page has had no news yet; they come at once.
    """
    if tick is None:
        raise PreventUpdate
    snapshot = screen.snapshot
    return _SHARED.of(snapshot, (key, time_key(time)), lambda: build(snapshot))


def chart(
    screen: Screen,
    tick: Any,
    time: Time | None,
    key: Hashable,
    build: Callable[[OperatorSnapshot], _T],
) -> _T:
    """As ``answer``, for what also shows the journal's marks."""
    return answer(screen, tick, time, (key, screen.desk.moves.version), build)
