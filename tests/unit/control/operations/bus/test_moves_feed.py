"""Moves folded from events, for all that look."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from control.kafka.errors import UnreachableError
from control.model.ids import ClusterId
from control.model.watched_cluster import WatchedCluster
from control.move.events import Event, EventKind
from control.move.state import Phase
from control.operations.bus import moves_feed as following
from control.operations.bus.moves_feed import Moves
from tests.support.patience import WAIT_S


def accepted(operation_id: str, submitted_ms: int) -> Event:
    data: dict[str, object] = {
        "who": "me", "reason": "why", "bootstrap": "b", "rollback_of": None,
        "submitted_ms": submitted_ms, "changes": [],
    }  # fmt: skip
    return Event(operation_id=operation_id, kind=EventKind.ACCEPTED, at_ms=1, data=data)


def test_events_become_states_and_wake_listeners() -> None:
    moves = Moves(None)
    woken: list[int] = []
    end = moves.subscribe(lambda: woken.append(moves.version))

    moves.take(accepted("mv-1", 10))
    moves.take(accepted("mv-2", 20))
    moves.take(Event(operation_id="mv-1", kind=EventKind.PAUSED, at_ms=2, message="paused"))
    end()
    moves.take(Event(operation_id="mv-1", kind=EventKind.RESUMED, at_ms=3))

    assert [state.operation_id for state in moves.newest_first] == ["mv-2", "mv-1"]
    assert woken == [1, 2, 3]
    state = moves.get("mv-1")
    assert state is not None
    assert (state.phase, state.message) == (Phase.RUNNING, "paused")


def test_lines_of_the_journal_are_no_moves() -> None:
    moves = Moves(None)

    moves.take(Event(operation_id="do-1", kind=EventKind.JOURNAL, at_ms=1))

    assert moves.newest_first == ()


def test_only_so_many_are_kept() -> None:
    moves = Moves(None)
    for number in range(following.MOVES_MAX + 3):
        moves.take(accepted(f"mv-{number}", number))

    assert len(moves.newest_first) == following.MOVES_MAX
    assert moves.get("mv-0") is None


async def test_without_a_bus_nothing_is_followed() -> None:
    moves = Moves(None)

    moves.maybe_follow()
    await moves.close()

    assert moves.trouble == ""


def test_what_is_done_to_other_clusters_on_the_bus_is_not_told() -> None:
    moves = Moves(None, WatchedCluster(bootstrap="c,d", cluster_id=ClusterId("C")))
    moves.take(accepted("mv-1", 10))
    other = accepted("mv-2", 20)
    other.data["bootstrap"] = "c"  # type: ignore[index]
    moves.take(other)
    theirs, ours = ({"bootstrap": "c", "cluster_id": which} for which in "XC")
    for number, data in enumerate(({"bootstrap": "b"}, {"bootstrap": "c"}, {}, theirs, ours)):
        done = {"operation_id": f"do-{number}", "kind": EventKind.JOURNAL, "at_ms": number}
        moves.take(Event(**done, data=data))  # type: ignore[arg-type]

    assert [state.operation_id for state in moves.newest_first] == ["mv-2"]
    assert (moves.get("mv-1"), moves.elsewhere("mv-1")) == (None, "b")
    assert (moves.get("mv-2") is None, moves.elsewhere("mv-2")) == (False, "")
    assert moves.elsewhere("mv-3") == ""
    assert {line.operation_id for line in moves.journal} == {"mv-2", "do-1", "do-2", "do-4"}, (
        "the id decides, also where the address is ours by now"
    )


class FlakyBus:
    """Told from its first event on each time, then away."""

    unreadable = ""

    async def events(self) -> AsyncIterator[Event]:
        yield accepted("mv-1", 10)
        yield Event(operation_id="mv-1", kind=EventKind.NOTE, at_ms=2, message="a note")
        yield Event(operation_id="do-1", kind=EventKind.JOURNAL, at_ms=3)
        raise UnreachableError("the bus", reason="away", next_step="wait")


async def test_what_is_told_again_after_an_outage_is_there_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(following, "FIRST_RETRY_S", 0.01)
    moves = Moves(FlakyBus)  # type: ignore[arg-type]
    outages: asyncio.Queue[str] = asyncio.Queue()

    def note() -> None:
        if moves.trouble:
            outages.put_nowait(moves.trouble)

    moves.subscribe(note)
    moves.maybe_follow()
    for _ in range(3):
        assert "away" in await outages.get()
    await moves.close()

    assert [line.operation_id for line in moves.journal] == ["mv-1", "do-1"]
    state = moves.get("mv-1")
    assert state is not None
    assert state.notes == ("a note",)


class PoisonedBus:
    """Nothing that can be read."""

    unreadable = "1 record of the bus cannot be read"

    async def events(self) -> AsyncIterator[Event]:
        raise UnreachableError("the bus", reason="away", next_step="wait")
        yield accepted("mv-1", 10)


async def test_what_cannot_be_read_is_told_also_where_nothing_else_is() -> None:
    moves = Moves(PoisonedBus)  # type: ignore[arg-type]
    told = asyncio.Event()
    moves.subscribe(told.set)
    moves.maybe_follow()
    await asyncio.wait_for(told.wait(), WAIT_S)
    await moves.close()
    assert (moves.newest_first, moves.unreadable) == ((), PoisonedBus.unreadable)
