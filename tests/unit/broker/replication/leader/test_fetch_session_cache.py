"""Fetch sessions take bounded memory, whatever clients say that they are."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from broker.replication.errors import (
    FetchSessionIdNotFoundError,
    NotLeaderError,
    UnknownTopicIdError,
)
from broker.replication.leader import fetch_session_cache
from tests.support.settle import until
from tests.unit.broker.replication.leader.test_fetch_service import Key, Session, at, fetch, request
from tests.unit.broker.replication.rig import Rig


@pytest.fixture
async def one_slot(tmp_path: Path) -> AsyncIterator[Rig]:
    """A leader with room for one session; replicas 8 and 9 are driven by hand."""
    made = Rig(tmp_path, nodes=1, max_incremental_fetch_session_cache_slots="1")
    made.create(1, 8, 9)
    yield made
    await made.close()


def sessions(rig: Rig) -> Any:
    return rig.nodes[1].replicas.fetches._sessions


async def test_who_has_no_replica_here_gets_no_session(rig: Rig) -> None:
    rig.create(1, 2)
    key = rig.nodes[1].partition().key
    for stranger in range(10_000, 12_000):
        answer = await Session(rig.nodes[1], stranger).poll({key: at(0)})
        assert isinstance(answer.results[key].error, NotLeaderError)
        assert answer.session_id == 0
    assert len(sessions(rig)) <= 1, "that of node 2"


async def test_a_session_keeps_nothing_of_what_is_not_replicated(rig: Rig) -> None:
    rig.create(1, 9)
    key = rig.nodes[1].partition().key
    follower = Session(rig.nodes[1], 9)
    await follower.poll({key: at(0)})
    (kept,) = sessions(rig)._sessions.values()
    for number in range(100):
        unknown: dict[Key, Any] = {(UUID(int=number << 16 | n).bytes, 0): at(0) for n in range(50)}
        asked = request(
            unknown,
            replica_id=9,
            session_id=follower.id,
            session_epoch=follower.epoch,
            max_bytes=0,  # so that nothing is looked at
        )
        follower.epoch += 1
        answer = await fetch(rig.nodes[1], asked)
        assert {type(data.error) for data in answer.results.values()} == {UnknownTopicIdError}
        assert len(answer.results) == 50
    assert kept.positions.keys() == {key}
    assert not kept.changed.keys() - {key}


async def test_without_room_a_follower_is_served_without_a_session(one_slot: Rig) -> None:
    leader = one_slot.nodes[1]
    key = leader.partition().key
    await leader.append("a", acks=1)
    first, second = Session(leader, 8), Session(leader, 9)
    await first.poll({key: at(1)})
    for _ in range(2):
        second.epoch = 0
        answer = await second.poll({key: at(0)})
        assert answer.session_id == 0
        assert answer.results[key].size_bytes > 0
    second.epoch = 0
    await second.poll({key: at(1)})
    assert leader.partition().high_watermark == 1, "its positions acknowledge all the same"
    assert len(leader.partition().sessions) == 1
    assert (await first.poll({})).session_error is None


async def test_a_session_unused_for_long_makes_room(
    one_slot: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = one_slot.nodes[1]
    key = leader.partition().key
    first, second = Session(leader, 8), Session(leader, 9)
    await first.poll({key: at(0)})
    monkeypatch.setattr(fetch_session_cache, "EVICTION_MS", 0)
    assert (await second.poll({key: at(0)})).session_id > 0
    assert isinstance((await first.poll({})).session_error, FetchSessionIdNotFoundError)
    assert (len(sessions(one_slot)), len(leader.partition().sessions)) == (1, 1)


async def test_replication_needs_no_session(tmp_path: Path) -> None:
    rig = Rig(tmp_path, max_incremental_fetch_session_cache_slots="0")
    rig.create(1, 2, 3, min_insync_replicas="3")
    for value in "abc":
        assert (await rig.nodes[1].append(value)).error is None
    rig.change(leader=2)
    assert (await rig.nodes[2].append("d")).error is None
    await until(lambda: rig.nodes[1].partition().log.log_end_offset == 4)
    assert len(sessions(rig)) == 0
    await rig.close()
