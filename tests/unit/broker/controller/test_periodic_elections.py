"""Elections that nobody asked for: when they are held, and that the controller holds them."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from broker.controller import periodic_elections
from broker.controller.active_controller import ActiveController
from broker.controller.periodic_elections import ControllerSettings, PeriodicElections
from broker.metadata.image import NO_LEADER, MetadataImage, broker_resource
from broker.metadata.records import ConfigRecord
from tests.support.metadata_plane import node_config
from tests.unit.broker.controller.images import (
    always,
    apply,
    cluster,
    fence,
    get,
    never,
    with_partition,
    with_topic,
)
from tests.unit.broker.log.helpers import FakeClock

SETTINGS = ControllerSettings(
    session_timeout_ms=60_000,
    first_grace_ms=600_000,
    rebalance_interval_ms=1000,
    unclean_interval_ms=3000,
)


def leaderless(partitions: int = 1) -> MetadataImage:
    """The only replica in sync is gone."""
    image = with_topic(cluster(2), "t", *[(1, 2)] * partitions)
    for number in range(partitions):
        found = get(image, "t", number)
        image = with_partition(image, found, isr=(1,), leader=NO_LEADER)
    return fence(image, 1)


def test_each_is_due_when_its_interval_has_passed() -> None:
    elections = PeriodicElections(SETTINGS, always)
    elections.begin(500)
    assert elections.due_at_ms == 1500
    home = with_topic(cluster(2), "t", (1, 2))
    away = with_partition(home, get(home, "t"), leader=2)
    assert not elections.decide(away, 1499).records
    moved = apply(away, list(elections.decide(away, 1500).records))
    assert get(moved, "t").leader == 1
    assert elections.due_at_ms == 2500
    image = leaderless()
    assert not elections.decide(image, 3499).records
    elected = get(apply(image, list(elections.decide(image, 3500).records)), "t")
    assert (elected.leader, elected.isr) == (2, (2,))


def test_nobody_is_elected_uncleanly_where_that_is_not_allowed() -> None:
    elections = PeriodicElections(SETTINGS, never)
    assert not elections.decide(leaderless(), 3000).records


def test_many_are_elected_some_at_a_time_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic_elections, "ELECTIONS_MAX", 2)
    elections = PeriodicElections(SETTINGS, always)
    elections.begin(0)
    image = leaderless(3)
    for expected in (2, 1):
        records = list(elections.decide(image, 3000).records)
        assert len(records) == expected
        image = apply(image, records)
    assert elections.due_at_ms == 4000


class Quorum:
    """Takes whatever is appended."""

    core = SimpleNamespace(epoch=1)
    offset = 1000

    def append(self, values: Sequence[bytes]) -> int:
        self.offset += len(values)
        return self.offset


async def test_a_config_of_the_whole_cluster_brings_leaders_in_time(tmp_path: Path) -> None:
    clock = FakeClock(0)
    quorum: Any = Quorum()
    absent: Any = None
    controller = ActiveController(
        quorum=quorum,
        clock=clock,
        settings=SETTINGS,
        broker_config=node_config(tmp_path, node_id=1, ports={1: (1, 2)}),
        topic_defaults=absent,
    )
    everywhere = broker_resource(None)
    config = ConfigRecord(
        resource_type=everywhere.type,
        resource_name=everywhere.name,
        name="unclean.leader.election.enable",
        value="true",
    )
    controller.activate(apply(leaderless(), [config]))
    controller._tick()
    assert get(controller.image, "t").leader == NO_LEADER
    clock.now_ms = 3000
    controller._tick()
    assert get(controller.image, "t").leader == 2
    controller.deactivate()
