"""What stands behind the screens of the snapshots: a store whose clock stands still, and an
operator whose cluster is a list of facts. Planner, pre-flight and folds are the real ones."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

from control.kafka.connection.settings import KafkaSettings
from control.kafka.ports import BrokerNode, GroupDescription, PartitionMetadata, TopicMetadata
from control.kafka.records.reader import FetchedRecord
from control.model.ids import TopicPartition
from control.model.watched_cluster import WatchedCluster
from control.move.events import MoveProgress, MovingPartition, Outcome, StalledMove
from control.move.journal_lines import JournalLine
from control.move.state import OperationState, Phase
from control.operations.catalogue.moves.reassign import Reassign
from control.operations.catalogue.operation import Operation
from control.operations.catalogue.topics.produce import Produce
from control.operations.errors import InvalidInputError
from control.operations.previews import Previewed
from control.operations.reassignment.facts import ClusterFacts, topology_of
from control.operations.reassignment.planning import Preview, preview_of
from control.operations.sends import Sends
from planner.by_hand import HandError, LeaderOrder, edited, parse_edits
from planner.goals import PlanRequest
from planner.optimizer import Plan, judged_plan, plan
from planner.planned_map import KeptPlans, plan_name
from planner.proposal import PartitionChange, Proposal
from tests.unit.control.operations.previews import previewed, previewed_as

NOW_MS: Final = 1_795_000_000_000
MIB: Final = 1 << 20
_RACKS: Final = {101: "a", 102: "b", 103: "c", 104: "a"}


def facts() -> ClusterFacts:
    """Broker 104 has just joined; producers write to every partition."""
    partitions, sizes = {}, {}
    for topic in range(3):
        for number in range(6):
            replicas = tuple(101 + (number + place) % 3 for place in range(3))
            key = TopicPartition(f"topic-{topic}", number)
            sizes[key] = (topic + 1) * (number + 2) * 40 * MIB
            partitions[key] = PartitionMetadata(
                topic=key.topic,
                partition=number,
                leader=replicas[0],
                leader_epoch=4,
                replicas=replicas,
                isr=replicas,
            )
    return ClusterFacts(
        cluster_id="test-cluster",
        brokers=tuple(BrokerNode(id=b, host="h", port=1, rack=r) for b, r in _RACKS.items()),
        partitions=partitions,
        reassigning={},
        sizes=sizes,
        usable_bytes=dict.fromkeys(_RACKS, 500 << 30),
        min_isr={},
        produced=dict.fromkeys(partitions, 0.2 * MIB),
        readers={"billing": frozenset(partitions)},
    )


CHANGES: Final = tuple(
    PartitionChange(
        topic="topic-1",
        partition=number,
        before=(101, 102, 103),
        after=(104, 102, 103),
        size_bytes=(number + 1) * 200 * MIB,
    )
    for number in range(3)
)
_RUNNING: Final = OperationState(
    waves_begun=1,
    operation_id="mv-3f9a21c4",
    phase=Phase.RUNNING,
    who="ada@ops",
    reason="104 has joined",
    submitted_ms=NOW_MS - 300_000,
    started_ms=NOW_MS - 290_000,
    changes=CHANGES,
    throttle_bytes_per_s=50 * MIB,
    throttle={},
    message="wave 1 of 1: 3 partitions",
    progress=MoveProgress(
        bytes_done=500 * MIB,
        bytes_total=1200 * MIB,
        partitions_done=1,
        partitions_total=3,
        wave=1,
        waves=1,
        rate_bytes_per_s=3.0 * MIB,
        eta_s_low=200.0,
        eta_s_high=310.0,
        in_flight=("topic-1-1", "topic-1-2"),
        stalled=(StalledMove(topic="topic-1", partition=2, reason="broker 104 is down"),),
        moving=(
            MovingPartition(
                topic="topic-1",
                partition=1,
                bytes_done=300 * MIB,
                bytes_total=400 * MIB,
                rate_bytes_per_s=3.0 * MIB,
                eta_s_low=30.0,
                eta_s_high=42.0,
            ),
            MovingPartition(topic="topic-1", partition=2, bytes_done=0, bytes_total=600 * MIB),
        ),
    ),
)
_DONE: Final = replace(
    _RUNNING,
    operation_id="mv-0b51e77d",
    phase=Phase.FINISHED,
    outcome=Outcome.DONE,
    throttle=None,
    message="done: 3 of 3 partitions moved",
    submitted_ms=NOW_MS - 90_000_000,
    started_ms=NOW_MS - 89_990_000,
    finished_ms=NOW_MS - 89_700_000,
)
LINES: Final = (
    JournalLine(
        at_ms=NOW_MS - 300_000,
        who="ada@ops",
        what="reassign 3 partitions",
        reason="104 has joined",
        outcome="running",
        operation_id="mv-3f9a21c4",
    ),
    JournalLine(
        at_ms=NOW_MS - 3_600_000,
        who="bob@ops",
        what="configure topic-1",
        reason="",
        outcome="done",
        operation_id="do-91c0aa12",
    ),
)


class CannedMoves:
    """What OperationsClient would read from the bus."""

    unreadable = ""

    async def list(self) -> list[OperationState]:
        return [_RUNNING, _DONE]

    async def get(self, operation_id: str) -> OperationState:
        for state in await self.list():
            if state.operation_id == operation_id:
                return state
        raise InvalidInputError({"id": f"no operation {operation_id}"})

    async def watch(
        self, operation_id: str, *, outage: object = None
    ) -> AsyncIterator[OperationState]:
        yield {state.operation_id: state for state in (_RUNNING, _DONE)}[operation_id]


class CannedSession:
    """Stands where control.operations.operation_session.OperationSession does."""

    settings = KafkaSettings(bootstrap="127.0.0.1:1")

    def __init__(self) -> None:
        self.moves = CannedMoves()
        self.journal = SimpleNamespace(lines=self._lines, unreadable="")
        self.plans = KeptPlans()
        self.watched = WatchedCluster()
        self.admin = SimpleNamespace(groups=self)
        self.sends = Sends(self)  # type: ignore[arg-type]

    def require(self, command: Operation, *, typed: str = "") -> None:
        """Everything may be done."""

    async def __aexit__(self, *_: object) -> None:
        return None

    def records(self, topic: str) -> KafkaSettings:
        return self.settings

    async def _lines(self) -> tuple[JournalLine, ...]:
        return LINES

    async def describe_group(self, group: str) -> GroupDescription:
        return GroupDescription(
            group_id=group, state="Empty", protocol="", members=(), group_type="classic"
        )

    async def topics(self) -> tuple[TopicMetadata, ...]:
        found: dict[str, list[PartitionMetadata]] = {}
        for key, partition in facts().partitions.items():
            found.setdefault(key.topic, []).append(partition)
        return tuple(
            TopicMetadata(name=name, topic_id=None, is_internal=False, partitions=tuple(items))
            for name, items in found.items()
        )

    async def limits(self, asked: Produce) -> str:
        return f"{asked.job.topic} takes at most 1,048,588 bytes"

    async def plan(self, values: Mapping[str, str]) -> Plan:
        return self.plans.keep(plan(topology_of(facts()), PlanRequest()), values)

    async def edit(self, chosen: Proposal, entries: str, values: Mapping[str, str]) -> Plan:
        topology = topology_of(facts())
        order = LeaderOrder(values["leader_order"])
        try:
            proposal = edited(topology, chosen, parse_edits(entries), leaders=order)
        except HandError as error:
            raise InvalidInputError({"by_hand": str(error)}) from error
        made, base = judged_plan(topology, PlanRequest(), proposal), plan_name(chosen)
        return self.plans.keep(made, values, base=base, entries=entries)

    async def preview(self, asked: Operation) -> Previewed:
        if isinstance(asked, Reassign):
            return previewed_as(asked.reviewed(await self.review(asked)), self.watched)
        return previewed(asked, self.watched)

    async def review(self, asked: Reassign) -> Preview:
        return preview_of(facts(), asked.proposal, throttle="auto")


def records() -> list[FetchedRecord]:
    """A few messages: text, JSON, a tombstone, bytes."""
    values: list[tuple[bytes | None, bytes | None]] = [
        (b"customer-17", b'{"order": 4711, "total": "12.40"}'),
        (b"customer-4", None),
        (None, b"\x00\x01\xff"),
    ]
    header: Any = SimpleNamespace(codec=0)
    return [
        FetchedRecord(
            topic="topic-1",
            partition=place % 2,
            offset=400 + place,
            timestamp_ms=NOW_MS - 1000 * (3 - place),
            key=key,
            value=value,
            headers=(("trace", b"9f"),),
            batch=header,
            crc_is_valid=True,
        )
        for place, (key, value) in enumerate(values)
    ]
