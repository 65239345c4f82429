"""The snapshot that the live blocks of a view show, with answers that others have asked of it.

Every callback that shows figures answers through ``answer``: it waits for the first news of a
page just opened (which come with the connection), and computes for all browsers at once.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from dash.exceptions import PreventUpdate

from control.views.snapshots.past import NothingKeptError, look_back
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot
from control.views.snapshots.store import StoreUnreadableError
from control.views.times import TimeError, parse_moment
from dashboard.context import PageContext
from dashboard.server.answer_cache import AnswerCache

ANSWERS_BYTES_MAX: Final = 8 << 20
PAST_BYTES_MAX: Final = 8 << 20
"""Of past moments, before views make tables of them; one of a large cluster is kept alone."""

Time = dict[str, str]
"""The page's time as its link has it: ``at`` and ``range``, each may lack."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a page that asks for a view looks at it."""

    time: Time = field(default_factory=dict)
    """The time that the page looks at."""
    scheme: str = "light"


USUAL_LOOK: Final = Look()
AT_ONCE: Final = {"version": None}
"""The tick of what comes with a view, rather than with news."""

_ANSWERS: Final = AnswerCache(ANSWERS_BYTES_MAX)
_PAST: Final = AnswerCache(PAST_BYTES_MAX)

_T = TypeVar("_T")


def moment_of(time: Mapping[str, str] | None, *, now_ms: int) -> int | None:
    """The past moment that is looked at; None: now (also where it cannot be read)."""
    at = (time or {}).get("at", "")
    try:
        return parse_moment(at, now_ms=now_ms) if at else None
    except TimeError:
        return None


def displayed_snapshot(context: PageContext, time: Mapping[str, str] | None) -> OperatorSnapshot:
    """The newest snapshot, or that of the moment which is looked at; an empty one that says why
    where nothing of it is kept or can be read."""
    now_ms = context.now_ms()
    at_ms = moment_of(time, now_ms=now_ms)
    live = context.snapshot
    if at_ms is None:
        return live
    second, cluster = at_ms // 1000, live.cluster.cluster

    def read() -> OperatorSnapshot:
        asked_ms = min(second * 1000 + 999, max(at_ms, now_ms))
        return look_back(context.reader, cluster=cluster, at_ms=asked_ms, now_ms=now_ms)

    # What cannot be shown is not remembered: history is merged late, and a store may become
    # readable again.
    try:
        return _PAST.of((cluster, second), read)
    except NothingKeptError as error:
        why = str(error)
    except StoreUnreadableError as error:
        why = f"history cannot be read: {error.why}"
    return build_snapshot(
        {}, version=0, now_ms=second * 1000, cluster=cluster, is_past=True, why_empty=why
    )


def answer(
    context: PageContext,
    tick: Any,
    time: Time | None,
    key: Hashable,
    build: Callable[[OperatorSnapshot], _T],
) -> _T:
    """The answer of ``build`` about the shown snapshot, made once for all who ask by this ``key``.

    Raises:
        PreventUpdate: the page has had no news yet; they come at once.
    """
    if tick is None:
        raise PreventUpdate
    snapshot = displayed_snapshot(context, time)
    of = (snapshot.cluster.cluster, snapshot.version, snapshot.built_ms)
    return _ANSWERS.of((of, key, time_key(time)), lambda: build(snapshot))


def chart(
    context: PageContext,
    tick: Any,
    time: Time | None,
    key: Hashable,
    build: Callable[[OperatorSnapshot], _T],
) -> _T:
    """As ``answer``, for what also shows the journal's marks."""
    return answer(context, tick, time, (key, context.actions.moves.version), build)


def time_key(time: Time | None) -> Hashable:
    """The page's time as a part of a key."""
    return tuple(sorted((time or {}).items()))
