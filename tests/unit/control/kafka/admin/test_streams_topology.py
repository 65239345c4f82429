"""The restore lag of a streams group, of what its members tell."""

from types import SimpleNamespace
from typing import Any

import pytest

from control.kafka.admin.streams_topology import (
    RestoringTask,
    StreamsTopology,
    Subtopology,
    streams_topology_of,
)
from control.kafka.records.group_details import StreamsDetails
from control.model.ids import TopicPartition
from control.views.group_facts import streams_document, streams_facts

NOT_KNOWN = 2**63 - 1
STORES = ("store-a", "store-b")


def _named(**names: Any) -> SimpleNamespace:
    return SimpleNamespace(**names)


def _tasks(*partitions: int) -> list[SimpleNamespace]:
    return [_named(subtopology_id="1", partitions=list(partitions))] if partitions else []


def _member(
    offsets: dict[int, int], ends: dict[int, int], *, active: int = 0, standby: int = 0
) -> SimpleNamespace:
    """Its active tasks have the first partitions, its standby tasks the next ones."""
    of = _named(
        active_tasks=_tasks(*range(active)),
        standby_tasks=_tasks(*range(active, active + standby)),
        warmup_tasks=[],
    )
    return _named(
        assignment=of,
        task_offsets=[_told(*it) for it in offsets.items()],
        task_end_offsets=[_told(*it) for it in ends.items()],
    )


def _told(partition: int, offset: int) -> SimpleNamespace:
    return _named(subtopology_id="1", partition=partition, offset=offset)


def _topology_of(*members: SimpleNamespace) -> StreamsTopology:
    part = _named(
        subtopology_id="1",
        source_topics=["words"],
        repartition_source_topics=[],
        repartition_sink_topics=[],
        state_changelog_topics=[_named(name=name) for name in STORES],
    )
    told = _named(epoch=0, subtopologies=[part])
    found = streams_topology_of(_named(topology=told, members=members))
    assert found is not None
    return found


def _subtopology(*members: SimpleNamespace) -> Subtopology:
    (only,) = _topology_of(*members).subtopologies
    return only


def test_it_is_the_end_less_the_offset_of_all_tasks_that_restore() -> None:
    restoring = _member({0: 20, 1: 0}, {0: 100, 1: 50}, active=2)
    assert _subtopology(restoring).restore_lag({}) == 130


def test_a_standby_beyond_the_end_that_its_member_knew_has_none() -> None:
    assert _subtopology(_member({0: 100}, {0: 99}, standby=1)).restore_lag({}) == 0


def test_an_end_that_its_member_has_not_read_is_that_of_the_logs() -> None:
    found = _subtopology(_member({0: 70}, {0: NOT_KNOWN}, standby=1))
    assert found.restoring == (RestoringTask(partition=0, offset=70, end=None),)
    keys = tuple(TopicPartition(name, 0) for name in STORES)
    assert found.unread_ends == keys
    assert found.restore_lag(dict(zip(keys, (60, 40), strict=True))) == 30
    assert found.restore_lag({keys[0]: 60}) is None, "the other changelog is gone"


@pytest.mark.parametrize(
    "member",
    [
        _member({}, {}, active=2),
        _member({0: 100}, {}, active=1),
        _member({7: 100}, {7: 120}, active=1),
    ],
    ids=["runs", "has run before", "no longer its task"],
)
def test_tasks_that_restore_nothing_tell_no_lag(member: SimpleNamespace) -> None:
    found = _subtopology(member)
    assert found.restoring == ()
    assert found.restore_lag({}) is None


@pytest.mark.parametrize(
    ("member", "words", "lag"),
    [
        (_member({}, {}, active=1), "no task tells that it restores", None),
        (_member({0: 0}, {0: 5_000}, active=1), "restore lag 5,000, told by 1 task", 5_000),
        (_member({0: 9}, {0: NOT_KNOWN}, active=1), "restore lag not known yet", None),
    ],
    ids=["silent", "restores", "end not read"],
)
def test_its_words(member: SimpleNamespace, words: str, lag: int | None) -> None:
    topology = _topology_of(member)
    (part,) = topology.subtopologies
    found = StreamsDetails(
        state="Stable",
        topology=topology,
        lags={},
        missing=(),
        restore_lags={part.id: part.restore_lag({})},
    )
    assert words in streams_facts(found)[-1].text
    assert streams_document(found)["subtopologies"][0]["restore_lag"] == lag
