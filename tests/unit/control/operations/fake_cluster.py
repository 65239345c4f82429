"""A cluster in memory that moves partitions when it is told to, and a run on it, tick by tick."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import NAMESPACE_DNS, UUID, uuid5

from kio.schema.errors import ErrorCode

from control.kafka.errors import KafkaPortError, RefusedError, UnreachableError, UnsupportedApiError
from control.kafka.ports import (
    BrokerNode,
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    ConfigScope,
    LogDir,
    OngoingReassignment,
    PartitionMetadata,
    TopicMetadata,
)
from control.model.ids import TopicPartition
from control.move.commands import ReassignCommand
from control.move.events import Event, EventKind
from control.move.state import OperationState, accepted_data, apply_event
from control.move.throttle import THROTTLE_NONE
from control.operations.executor.run import ReassignRun
from control.operations.executor.run_context import ControlFlags
from control.operations.reassignment.calibration import Calibration
from planner.proposal import PartitionChange
from planner.waves import WaveRules

FROM, TO, ELSEWHERE = (1, 2), (3, 2), (4, 2)


def key_of(topic: str, partition: int) -> TopicPartition:
    return TopicPartition(topic, partition)


def change(topic: str, partition: int = 0, *, size_bytes: int = 0) -> PartitionChange:
    return PartitionChange(
        topic=topic, partition=partition, before=FROM, after=TO, size_bytes=size_bytes
    )


class FakeCluster:
    """Kafka's rules for reassignments, as far as a run meets them; log directories are not told
    unless a test fills them."""

    def __init__(self, placed: Mapping[TopicPartition, Sequence[int]]) -> None:
        self.placed = {key: tuple(replicas) for key, replicas in placed.items()}
        self.targets: dict[TopicPartition, tuple[int, ...]] = {}
        self.origins: dict[TopicPartition, tuple[int, ...]] = {}
        self.alive = {1, 2, 3, 4}
        self.registered: frozenset[int] | None = None
        """None: it does not tell."""
        self.isr: dict[TopicPartition, tuple[int, ...]] = {}
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.config_refusals: dict[int, KafkaPortError] = {}
        """Of changes of configs, by broker."""
        self.removal_refusals: dict[int, KafkaPortError] = {}
        """Of those that only remove."""
        self.list_refusals: dict[str, KafkaPortError] = {}
        """Of changes of configs, by topic."""
        self.asked: list[dict[TopicPartition, tuple[int, ...] | None]] = []
        """Every request for reassignments."""
        self.refusals: dict[TopicPartition, Exception] = {}
        """Of reassignments, by partition."""
        self.failure: KafkaPortError | None = None
        """Of listing reassignments."""
        self.logs: tuple[LogDir, ...] | None = None
        self.ids: dict[str, UUID] = {key.topic: uuid5(NAMESPACE_DNS, key.topic) for key in placed}
        self.created = 0
        self.clock_s = 0.0
        """Each question for configs takes half a minute."""

    def delete(self, topic: str) -> None:
        for key in [key for key in self.placed if key.topic == topic]:
            del self.placed[key]
            self.targets.pop(key, None)
        self.configs = {at: was for at, was in self.configs.items() if at.name != topic}

    def create_anew(self, topic: str, placed: Mapping[int, Sequence[int]]) -> None:
        """Another topic of that name."""
        self.delete(topic)
        self.created += 1
        self.ids[topic] = UUID(int=self.created)
        self.placed |= {TopicPartition(topic, n): tuple(at) for n, at in placed.items()}

    def begin(self, key: TopicPartition, target: Sequence[int]) -> None:
        """Somebody asks for a move; one without data is done at once."""
        origin = self.placed[key]
        if set(target) <= set(origin):
            self.placed[key] = tuple(target)
            self.targets.pop(key, None)
            return
        self.origins[key], self.targets[key] = origin, tuple(target)
        self.placed[key] = (*target, *(r for r in origin if r not in target))

    def arrive(self, *keys: TopicPartition) -> None:
        """These, or all that move, are there."""
        for key in keys or tuple(self.targets):
            self.placed[key] = self.targets.pop(key)

    def cancel_begun(self, key: TopicPartition) -> None:
        """In the order of the target, as Kafka does."""
        origin = self.origins[key]
        self.placed[key] = tuple(r for r in self.placed[key] if r in origin)
        del self.targets[key]

    async def describe_cluster(self) -> ClusterDescription:
        brokers = tuple(BrokerNode(id=id_, host="h", port=1) for id_ in sorted(self.alive))
        return ClusterDescription(cluster_id="c", controller_id=1, brokers=brokers)

    async def registered_brokers(self) -> frozenset[int] | None:
        return self.registered

    async def topics(
        self, names: Iterable[str] | None = None, *, leaves_out_unknown: bool = False
    ) -> tuple[TopicMetadata, ...]:
        known = {key.topic for key in self.placed}
        wanted = known if names is None else set(names)
        if leaves_out_unknown:
            wanted &= known
        if wanted - known:
            code = ErrorCode.unknown_topic_or_partition
            raise RefusedError(code, what=f"topic {min(wanted - known)}")
        return tuple(
            TopicMetadata(
                name=name,
                topic_id=self.ids.get(name),
                is_internal=False,
                partitions=tuple(self._metadata(k) for k in sorted(self.placed) if k.topic == name),
            )
            for name in sorted(wanted)
        )

    def _metadata(self, key: TopicPartition) -> PartitionMetadata:
        replicas = self.placed[key]
        return PartitionMetadata(
            topic=key.topic,
            partition=key.partition,
            leader=replicas[0],
            leader_epoch=0,
            replicas=replicas,
            isr=self.isr.get(key, tuple(r for r in replicas if r in self.alive) or replicas),
            topic_id=self.ids.get(key.topic),
        )

    async def list_reassignments(self) -> tuple[OngoingReassignment, ...]:
        if self.failure is not None:
            raise self.failure
        return tuple(
            OngoingReassignment(
                topic=key.topic,
                partition=key.partition,
                replicas=self.placed[key],
                adding_replicas=tuple(r for r in target if r not in self.origins[key]),
                removing_replicas=tuple(r for r in self.origins[key] if r not in target),
            )
            for key, target in sorted(self.targets.items())
        )

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], **_: Any
    ) -> Mapping[TopicPartition, Exception]:
        if targets:
            self.asked.append({k: None if t is None else tuple(t) for k, t in targets.items()})
        return {key: why for key, to in targets.items() if (why := self._alter(key, to))}

    def _alter(self, key: TopicPartition, target: Sequence[int] | None) -> Exception | None:
        code = ErrorCode.unknown_topic_or_partition
        unknown = RefusedError(code, what=f"moving {key}") if key not in self.placed else None
        refusal = self.refusals.get(key) or unknown
        if refusal is None and target is None:
            self.cancel_begun(key)
        elif refusal is None and target is not None:
            self.begin(key, target)
        return refusal

    async def elect_leaders(self, *_: Any) -> Mapping[TopicPartition, Exception]:
        return {}

    async def missing_rights(self, *_: Any) -> tuple[()]:
        return ()

    async def log_dirs(self, brokers: Collection[int] | None = None, **_: Any) -> Any:
        if self.logs is None:
            raise UnsupportedApiError("describe log directories", served=None)
        return tuple(it for it in self.logs if brokers is None or it.broker in brokers)

    async def describe_configs(
        self, resource: ConfigResource, names: Iterable[str] | None = None
    ) -> tuple[ConfigEntry, ...]:
        await self._check_reached(resource)
        return tuple(
            ConfigEntry(
                name=name,
                value=value,
                is_default=False,
                is_read_only=False,
                is_sensitive=False,
                source=1,
            )
            for name, value in sorted(self.configs.get(resource, {}).items())
            if names is None or name in set(names)
        )

    async def describe_many_configs(
        self, resources: Iterable[ConfigResource], names: Iterable[str] | None = None
    ) -> Mapping[ConfigResource, tuple[ConfigEntry, ...]]:
        found, known = {}, {key.topic for key in self.placed}
        self.clock_s += 30.0
        for resource in resources:
            if resource.scope is ConfigScope.BROKER or resource.name in known:
                found[resource] = await self.describe_configs(resource, names)
        return found

    async def alter_many_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> None:
        for resource, configs in changes.items():
            await self._check_reached(resource)
            if resource.scope is ConfigScope.BROKER:
                self._refuse_configs(int(resource.name), configs)
            elif resource.name in self.list_refusals:
                raise self.list_refusals[resource.name]
            now = self.configs.setdefault(resource, {})
            now |= {name: value for name, value in configs.items() if value is not None}
            for name in [name for name, value in configs.items() if value is None]:
                now.pop(name, None)

    def _refuse_configs(self, broker: int, configs: Mapping[str, str | None]) -> None:
        refusal = self.config_refusals.get(broker)
        if not any(configs.values()):
            refusal = self.removal_refusals.get(broker, refusal)
        if refusal is not None:
            raise refusal

    async def _check_reached(self, resource: ConfigResource) -> None:
        if resource.scope is ConfigScope.TOPIC:
            await self.topics([resource.name])
        elif int(resource.name) not in self.alive:
            raise UnreachableError("gone", reason=f"{resource.name} is down", next_step="wait")

    def shown(self) -> dict[str, str]:
        """Configs that are set, ``topic name`` or ``broker name`` → value."""
        return {
            f"{resource.name} {name}": value
            for resource, configs in self.configs.items()
            for name, value in configs.items()
        }


class Script(ControlFlags):
    """What operators ask; each wait of the run takes the next step and no time."""

    def __init__(self, *steps: Callable[[], object], **asked: Any) -> None:
        super().__init__(**asked)
        self.steps = list(steps)

    async def wait(self, timeout_s: float | None = None) -> None:
        if not self.steps:
            raise AssertionError("the run waits for nothing that will come")
        self.steps.pop(0)()


def idle() -> None:
    """A step in which nothing happens."""


@dataclass
class FakeContext:
    """Folds what the run tells, as the executor does; `past` events were told before a crash."""

    command: ReassignCommand
    script: Script = field(default_factory=Script)
    events: list[Event] = field(default_factory=list)
    tidied: set[int] = field(default_factory=set)
    """Brokers where what others left behind goes before ours is set."""

    def __post_init__(self) -> None:
        self._state = OperationState(operation_id=self.command.operation_id)
        self._apply(EventKind.ACCEPTED, "accepted", accepted_data(self.command))

    def told(self, kind: EventKind, message: str = "", **data: Any) -> "FakeContext":
        """An event of an executor before."""
        self._apply(kind, message, data)
        return self

    def _apply(self, kind: EventKind, message: str, data: dict[str, Any]) -> None:
        event = Event(
            operation_id=self.command.operation_id,
            kind=kind,
            at_ms=len(self.events) + 1,
            message=message,
            data=data,
        )
        self.events.append(event)
        self._state = apply_event(self._state, event)

    def state(self) -> OperationState:
        return self._state

    def flags(self) -> ControlFlags:
        return self.script

    async def hold(self) -> None:
        """Ours for good."""

    async def emit(self, kind: EventKind, message: str = "", **data: Any) -> None:
        self._apply(kind, message, data)

    async def pause(self, reason: str) -> None:
        self.script.is_paused = True

    async def remove_left_throttles(self, *, also_on: Collection[int] = ()) -> None:
        self.tidied |= set(also_on)

    def said(self, kind: EventKind) -> list[str]:
        return [event.message for event in self.events if event.kind is kind]


def command_of(*changes: PartitionChange, **known: Any) -> ReassignCommand:
    """One partition a wave, without a throttle."""
    given = {"throttle": THROTTLE_NONE, "waves": WaveRules(partitions=1), **known}
    return ReassignCommand(operation_id="mv-1", bootstrap="c:1", changes=changes, **given)


def begun(command: ReassignCommand, *, wave: int) -> FakeContext:
    """As a crash leaves it in this wave."""
    context = FakeContext(command)
    progress = dict.fromkeys(("bytes_done", "bytes_total", "partitions_done"), 0)
    progress |= {"partitions_total": len(command.changes), "wave": 0, "waves": 2}
    context.told(EventKind.STARTED, "begun", progress=progress)
    for number in range(1, wave + 1):
        context.told(EventKind.WAVE_STARTED, f"wave {number}", wave=number)
        if number < wave:
            context.told(EventKind.WAVE_DONE, f"wave {number} done", wave=number)
    return context


async def run(cluster: Any, context: FakeContext, *steps: Callable[[], object]) -> OperationState:
    """To its end; each wait takes the next of the steps."""
    context.script.steps += steps
    await ReassignRun(cluster, context.command, context, Calibration()).run()
    return context.state()
