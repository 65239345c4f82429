"""Create a topic, also like another one or by a template."""

import asyncio
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar, Final, Self

from kio.schema.errors import ErrorCode

from control.kafka.acl import AclOperation, Lacking
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.errors import KafkaPortError, RefusedError
from control.kafka.ports import (
    CLUSTERS_OWN,
    BrokerNode,
    ConfigResource,
    ConfigScope,
    NewTopic,
    TopicMetadata,
)
from control.model.units import counted
from control.operations import checks
from control.operations.catalogue.configs import no_config_words
from control.operations.catalogue.fields import REASON
from control.operations.catalogue.forms import Confirmation, FieldKind, FormField, OperationForm
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.catalogue.topics.topic_templates import (
    TEMPLATE_HELP,
    TEMPLATES,
    Template,
)
from control.operations.errors import InvalidInputError, StalePreviewError
from control.operations.protected_topics import check_topic
from control.operations.reassignment.facts import cordoned_brokers
from planner.new_topic import placed
from planner.racks import Racks

CLUSTER_DEFAULT: Final = "the cluster's default"
_SOURCE_TOPIC: Final = 1
_OF_A_MOVE: Final = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
"""Configs that a topic like another does not take over."""
_PLACED_MAX: Final = 10_000
"""Partitions; Kafka creates no more at once."""


class Placing(StrEnum):
    """Chooses the brokers of the replicas."""

    EVENLY = "evenly"
    """The preview: fewest replicas first, over all racks (``planner.new_topic``)."""
    CLUSTER = "cluster"
    """The controller, when it creates the topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic(Operation):
    """Returns when every partition has a leader."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="create_topic",
        key="n",
        title="Create a topic",
        help="name, partitions, replication factor, configs; also like another topic",
        submit_label="Create",
        confirmation=Confirmation.PREVIEW,
        fields=(
            FormField(name="topic", label="Name", is_required=True, check=checks.topic_name),
            FormField(
                name="partitions",
                label="Partitions",
                kind=FieldKind.NUMBER,
                help="empty: num.partitions of the cluster",
                check=checks.whole(1, checks.PARTITIONS_MAX),
            ),
            FormField(
                name="replication_factor",
                label="Replication factor",
                kind=FieldKind.NUMBER,
                help="empty: default.replication.factor of the cluster",
                check=checks.whole(1, checks.FACTOR_MAX),
            ),
            FormField(
                name="like",
                label="Like topic",
                kind=FieldKind.TOPIC,
                help="topic to copy partitions, replication factor and configs from",
            ),
            FormField(
                name="template",
                label="Template",
                kind=FieldKind.CHOICE,
                default=Template.NONE,
                choices=tuple(Template),
                help=TEMPLATE_HELP,
            ),
            FormField(
                name="configs", label="Configs", help="name=value, …", check=checks.config_pairs
            ),
            FormField(
                name="placing",
                label="Replicas are placed",
                kind=FieldKind.CHOICE,
                default=Placing.EVENLY,
                choices=tuple(Placing),
                help="evenly over racks, then brokers with fewest replicas; cluster: its choice",
            ),
            REASON,
        ),
    )
    RIGHTS: ClassVar[Lacking] = ((AclOperation.CREATE, "cluster"),)

    topic: str
    partitions: int | None = None
    """None: those of the topic that it is like, or ``num.partitions`` of the cluster."""
    replication_factor: int | None = None
    """None: as with ``partitions``, ``default.replication.factor``."""
    configs: Mapping[str, str] = field(default_factory=dict)
    like: str = ""
    """The topic that gives what is not given here; empty: none."""
    template: Template = Template.NONE
    """Configs that give way to those of ``like`` and of ``configs``."""
    placing: Placing = Placing.EVENLY
    assignment: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Of the frozen command: the replicas of each partition; empty: the cluster places them."""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        return cls(
            topic=fields["topic"],
            partitions=int(fields["partitions"]) if fields["partitions"] else None,
            replication_factor=int(fields["replication_factor"] or 0) or None,
            configs=checks.pairs(fields["configs"]),
            like=fields["like"],
            template=Template(fields["template"] or Template.NONE),
            placing=Placing(fields["placing"] or Placing.EVENLY),
            reason=fields["reason"],
        )

    @property
    def what(self) -> str:
        """For the journal."""
        return f"create topic {self.topic}"

    def check(self) -> None:
        """:raises ProtectedTopicError: its owner creates it."""
        check_topic("create_topic", self.topic)

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """The topic as the cluster's own check lets it pass, and where its replicas will be.

        :raises InvalidInputError: there is no such config.
        :raises RefusedError: the name is taken, a number or config is not acceptable, or there is
            no topic to be like.
        """
        admin = context.admin
        wanted = await self._filled(admin)
        brokers: tuple[BrokerNode, ...] = ()
        if self.placing is Placing.EVENLY:
            brokers = await _open_brokers(admin)
            wanted = await wanted._placed(admin, brokers)
        try:
            await admin.create_topic(wanted._new(), validate_only=True)
        except RefusedError as error:
            if error.code is ErrorCode.invalid_config:
                await _require_known(admin, wanted.configs)
            raise
        changes = (
            Change("topic", None, self.topic, f"{self.topic} will be created"),
            Change("partitions", None, wanted.partitions or CLUSTER_DEFAULT),
            Change("replication factor", None, wanted.replication_factor or CLUSTER_DEFAULT),
            *(Change(name, None, value) for name, value in wanted.configs.items()),
            *_placement_changes(wanted.assignment),
        )
        notes = () if wanted.assignment else ("the cluster chooses the brokers of the replicas",)
        holders = {it for replicas in wanted.assignment.values() for it in replicas}
        facts = frozenset((it.id, it.rack) for it in brokers if it.id in holders)
        return Effect(command=wanted, changes=changes, notes=notes, facts=facts)

    async def require_fresh(self, context: OperationContext, facts: Hashable) -> None:
        """The brokers that get replicas still take some, in the same racks. One that came is no
        reason to ask anew.

        :raises StalePreviewError: one left, takes no new replicas any more, or is in another rack.
        """
        now = {(it.id, it.rack) for it in await _open_brokers(context.admin)}
        if self.assignment and isinstance(facts, frozenset) and not facts <= now:
            gone = ", ".join(str(broker) for broker, _ in sorted(facts - now))
            why = f"broker {gone} left, takes no new replicas any more, or is in another rack"
            raise StalePreviewError(self.what, why)

    async def perform(self, context: OperationContext) -> Done:
        """Create it and wait until it is led."""
        await context.admin.create_topic(self._new())
        (made,) = await context.admin.topics([self.topic])
        partitions = counted(len(made.partitions), "partition")
        words = (
            f"{self.topic} is created: {partitions}, replication factor {_factor(made)}; "
            "all partitions have leaders"
        )
        return Done(words=words, view="topic", params={"topic": self.topic})

    async def _filled(self, admin: KafkaAdmin) -> Self:
        """With what the other topic and the template give."""
        configs = dict(TEMPLATES[self.template])
        if not self.like:
            return replace(self, configs=configs | dict(self.configs))
        (model,) = await admin.topics([self.like])
        resource = ConfigResource(scope=ConfigScope.TOPIC, name=self.like)
        for entry in await admin.describe_configs(resource):
            is_own = entry.source == _SOURCE_TOPIC and entry.name not in _OF_A_MOVE
            if is_own and entry.value is not None:
                configs[entry.name] = entry.value
        return replace(
            self,
            partitions=self.partitions or len(model.partitions),
            replication_factor=self.replication_factor or _factor(model),
            configs=configs | dict(self.configs),
        )

    async def _placed(self, admin: KafkaAdmin, brokers: Iterable[BrokerNode]) -> Self:
        """With replicas placed evenly; as it is where the cluster does not tell its defaults, or
        has too few brokers."""
        held = dict.fromkeys((broker.id for broker in brokers), 0)
        numbers = await _numbers(admin, self)
        if numbers is None:
            return self
        partitions, factor = numbers
        if not (1 <= partitions <= _PLACED_MAX and 1 <= factor <= len(held)):
            return self
        there = Counter(
            replica
            for topic in await admin.topics()
            for partition in topic.partitions
            for replica in partition.target_replicas
        )
        racks = Racks(of={broker.id: broker.rack for broker in brokers})
        held = {broker: there[broker] for broker in held}
        replicas = await asyncio.to_thread(
            placed, held, racks, partitions=partitions, factor=factor
        )
        return replace(
            self,
            partitions=partitions,
            replication_factor=factor,
            assignment=dict(enumerate(replicas)),
        )

    def _new(self) -> NewTopic:
        return NewTopic(
            name=self.topic,
            partitions=CLUSTERS_OWN if self.partitions is None else self.partitions,
            replication_factor=self.replication_factor or CLUSTERS_OWN,
            configs=self.configs,
            assignment=self.assignment or None,
        )


async def _require_known(admin: KafkaAdmin, names: Iterable[str]) -> None:
    """Refuses a config that no topic has; the configs of any topic tell which there are.

    :raises InvalidInputError: there is no such config.
    """
    topics = await admin.topics()
    if not topics:
        return
    one = min(topics, key=lambda it: it.name.startswith("__"))
    resource = ConfigResource(scope=ConfigScope.TOPIC, name=one.name)
    known = {it.name for it in await admin.describe_configs(resource)}
    for name in names:
        if name not in known:
            words = no_config_words("topic", name, known, resource.name)
            raise InvalidInputError({"configs": words})


async def _open_brokers(admin: KafkaAdmin) -> tuple[BrokerNode, ...]:
    """Live brokers that take new replicas."""
    cluster, cordoned = await admin.describe_cluster(), await cordoned_brokers(admin)
    return tuple(broker for broker in cluster.brokers if broker.id not in cordoned)


async def _numbers(admin: KafkaAdmin, asked: CreateTopic) -> tuple[int, int] | None:
    """Partitions and replication factor, with the cluster's defaults; None: it does not tell."""
    if asked.partitions is not None and asked.replication_factor is not None:
        return asked.partitions, asked.replication_factor
    cluster = await admin.describe_cluster()
    names = ["num.partitions", "default.replication.factor"]
    resource = ConfigResource(scope=ConfigScope.BROKER, name=str(cluster.brokers[0].id))
    try:
        entries = await admin.describe_configs(resource, names)
    except KafkaPortError:
        return None
    told = {entry.name: int(entry.value) for entry in entries if entry.value}
    if not told.keys() >= set(names):
        return None
    partitions, factor = (told[name] for name in names)
    return asked.partitions or partitions, asked.replication_factor or factor


def _placement_changes(assignment: Mapping[int, tuple[int, ...]]) -> Iterable[Change]:
    """Which broker gets how much."""
    replicas = Counter(broker for brokers in assignment.values() for broker in brokers)
    leaders = Counter(brokers[0] for brokers in assignment.values())
    for broker in sorted(replicas):
        gets = f"{counted(replicas[broker], 'replica')}, {leaders[broker]:,} of them leading"
        yield Change(f"broker {broker}", None, gets, f"broker {broker}: {gets}")


def _factor(topic: TopicMetadata) -> int:
    return max(len(each.target_replicas) for each in topic.partitions)
