"""Create a topic."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Self

from control.kafka.collector.rights import AclOperation, Lacking
from control.kafka.ports import CLUSTERS_OWN, NewTopic
from control.model.units import counted
from control.operations import checks
from control.operations.catalogue.fields import REASON
from control.operations.catalogue.forms import Confirmation, FieldKind, FormField, OperationForm
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.protected_topics import check_topic

CLUSTER_DEFAULT: Final = "the cluster's default"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic(Operation):
    """Returns when every partition has a leader."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="create_topic",
        key="n",
        title="Create a topic",
        help="name, partitions, replication factor, configs",
        submit_label="Create",
        confirmation=Confirmation.NONE,
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
                check=checks.whole(1, 100),
            ),
            FormField(
                name="configs", label="Configs", help="name=value, …", check=checks.config_pairs
            ),
            REASON,
        ),
    )
    RIGHTS: ClassVar[Lacking] = ((AclOperation.CREATE, "cluster"),)

    topic: str
    partitions: int | None = None
    """None: ``num.partitions`` of the cluster."""
    replication_factor: int | None = None
    """None: ``default.replication.factor`` of the cluster."""
    configs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        return cls(
            topic=fields["topic"],
            partitions=int(fields["partitions"]) if fields["partitions"] else None,
            replication_factor=int(fields["replication_factor"] or 0) or None,
            configs=checks.pairs(fields["configs"]),
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
        """The new topic, once the cluster's own check has passed."""
        await context.admin.create_topic(self._new(), validate_only=True)
        changes = [
            Change("topic", None, self.topic, f"{self.topic} is created"),
            Change("partitions", None, self.partitions or CLUSTER_DEFAULT),
            Change("replication factor", None, self.replication_factor or CLUSTER_DEFAULT),
            *(Change(name, None, value) for name, value in self.configs.items()),
        ]
        return Effect(command=self, changes=tuple(changes))

    async def perform(self, context: OperationContext) -> Done:
        """Create it and wait until it is led."""
        await context.admin.create_topic(self._new())
        (made,) = await context.admin.topics([self.topic])
        partitions = counted(len(made.partitions), "partition")
        factor = max(len(each.replicas) for each in made.partitions)
        words = (
            f"{self.topic} is created: {partitions}, replication factor {factor}; "
            "all partitions have leaders"
        )
        return Done(words=words, view="topic", params={"topic": self.topic})

    def _new(self) -> NewTopic:
        return NewTopic(
            name=self.topic,
            partitions=CLUSTERS_OWN if self.partitions is None else self.partitions,
            replication_factor=self.replication_factor or CLUSTERS_OWN,
            configs=self.configs,
        )
