"""A broker of real Kafka without the listener by which the cluster is asked: it runs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.model.ids import TopicPartition
from control.operations.reassignment.facts import read_facts, topology_of
from control.operations.reassignment.planning import Planning
from planner.goals import PlanRequest
from tests.contract.operations_rig import topic_with_data
from tests.support.collecting import becomes, collecting
from tests.support.kafka_oracle import KafkaCluster
from tests.support.phrases import lacking
from tests.support.ports import free_ports
from tests.support.settle import eventually

pytestmark = pytest.mark.kafka_oracle

FIRST, SECOND, HIDDEN = 101, 102, 103
LISTENER = "OUTSIDE"


@dataclass
class PartlyOutside(KafkaCluster):
    """Nodes 101 and 102 have a listener that 103 lacks."""

    outside: dict[int, int] = field(default_factory=dict)

    def properties(self, node_id: int) -> dict[str, str]:
        """With the second listener, where the node has it."""
        found = super().properties(node_id)
        if node_id == HIDDEN:
            return found
        self.outside.setdefault(node_id, free_ports(1)[0])
        at = f"{LISTENER}://127.0.0.1:{self.outside[node_id]}"
        names = ("PLAINTEXT", "CONTROLLER", LISTENER)
        return {
            **found,
            "listeners": f"{found['listeners']},{at}",
            "advertised.listeners": f"{found['advertised.listeners']},{at}",
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
        }


@pytest.fixture
def cluster(kafka_libs: Path, tmp_path: Path) -> Iterator[PartlyOutside]:
    assert kafka_libs.exists()
    with PartlyOutside(tmp_path / "outside") as running:
        yield running


async def test_a_broker_without_our_listener_is_not_taken_for_dead(cluster: PartlyOutside) -> None:
    async with KafkaAdmin.to(cluster.bootstrap) as inside:
        placed = {0: (HIDDEN, FIRST), 1: (FIRST, SECOND), 2: (SECOND, HIDDEN)}
        topic = await topic_with_data(inside, placed, records=3)
    where = ",".join(f"127.0.0.1:{port}" for port in cluster.outside.values())
    async with KafkaAdmin.to(where) as admin:

        async def listed() -> set[int]:
            return {broker.id for broker in (await admin.describe_cluster()).brokers}

        await eventually(listed, {FIRST, SECOND})
        facts = await read_facts(admin)
        assert (facts.hidden, facts.listener) == (frozenset({HIDDEN}), LISTENER)
        assert facts.has_leader(facts.partitions[TopicPartition(topic, 0)]), "103 leads it"
        assert topology_of(facts).down == frozenset()
        told = " ".join((await Planning(admin).plan(PlanRequest())).limits)
        assert not lacking(told, f"broker {HIDDEN} runs", f"no listener {LISTENER}")
        assert "does not run" not in told
    async with collecting(KafkaSettings(bootstrap=where)) as (_, collected):

        def told_brokers() -> set[tuple[int, str, bool]]:
            rounds = [record for records in collected.rounds.values() for record in records]
            rows = [row for record in rounds for row in record.brokers]
            return {(row.id, row.host, row.fenced) for row in rows}

        named = {(id_, "127.0.0.1", False) for id_ in (FIRST, SECOND)}
        await becomes(told_brokers, named | {(HIDDEN, "", False)})

        def leaders() -> set[tuple[int, int]]:
            rounds = [record for records in collected.rounds.values() for record in records]
            rows = [row for record in rounds for row in record.replicas if row.topic == topic]
            return {(row.partition, row.leader) for row in rows}

        await becomes(leaders, {(0, HIDDEN), (1, FIRST), (2, SECOND)})
