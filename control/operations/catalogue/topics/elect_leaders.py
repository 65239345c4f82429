"""Elect preferred leaders."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import ClassVar, Self

from control.kafka.acl import AclOperation, Lacking
from control.kafka.ports import ElectionType, PartitionMetadata
from control.model.ids import TopicPartition
from control.model.units import counted
from control.operations import checks
from control.operations.catalogue.fields import REASON
from control.operations.catalogue.forms import Confirmation, FormField, OperationForm
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.errors import NotElectedError


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeaders(Operation):
    """The first replica of each partition becomes its leader again."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="elect",
        key="E",
        title="Elect preferred leaders",
        help="make preferred replicas lead again",
        submit_label="Elect",
        confirmation=Confirmation.PREVIEW,
        fields=(FormField(name="topics", label="Topics", help="names or patterns; all"), REASON),
    )
    RIGHTS: ClassVar[Lacking] = ((AclOperation.ALTER, "cluster"),)

    topics: tuple[str, ...] = ()
    """Names or patterns such as ``orders*``; empty: all."""
    partitions: tuple[TopicPartition, ...] = ()
    """Of the frozen command: those that another replica leads."""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        return cls(topics=tuple(checks.split_pairs(fields["topics"])), reason=fields["reason"])

    @property
    def what(self) -> str:
        """For the journal."""
        return "elect preferred leaders" + (f" of {', '.join(self.topics)}" if self.topics else "")

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """The partitions that another replica leads.

        :raises RefusedError: a topic named without a pattern does not exist.
        """
        exact = [name for name in self.topics if not set(name) & set("*?[")]
        if exact:
            await context.admin.topics(exact)
        wrong = [
            partition
            for topic in await context.admin.topics()
            if not self.topics or any(fnmatchcase(topic.name, each) for each in self.topics)
            for partition in topic.partitions
            if partition.replicas and partition.leader != partition.replicas[0]
        ]
        frozen = replace(self, partitions=tuple(partition.key for partition in wrong))
        return Effect(command=frozen, changes=tuple(map(_change_of, wrong)))

    async def perform(self, context: OperationContext) -> Done:
        """:raises NotElectedError: some partitions keep their leader."""
        refused = await context.admin.elect_leaders(self.partitions, ElectionType.PREFERRED)
        if refused:
            raise NotElectedError([f"{key}: {error}" for key, error in refused.items()])
        return Done(words=f"{counted(len(self.partitions), 'leader')} elected")


def _change_of(partition: PartitionMetadata) -> Change:
    leader = None if partition.leader < 0 else partition.leader
    words = f"{partition.key}: leader {'none' if leader is None else leader}"
    return Change(
        str(partition.key), leader, partition.replicas[0], f"{words} → {partition.replicas[0]}"
    )
