"""Delete a topic."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from control.kafka.collector.rights import AclOperation, Lacking
from control.model.units import counted
from control.operations.catalogue.fields import REASON, TOPIC
from control.operations.catalogue.forms import Confirmation, OperationForm
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.protected_topics import check_topic, doubts


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopic(Operation):
    """Its records are lost."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="delete_topic",
        key="D",
        title="Delete a topic",
        help="its data is gone for good",
        submit_label="Delete",
        is_destructive=True,
        confirmation=Confirmation.TYPED,
        fields=(TOPIC, REASON),
    )
    RIGHTS: ClassVar[Lacking] = ((AclOperation.DELETE, "topic"),)

    topic: str

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        return cls(topic=fields["topic"], reason=fields["reason"])

    @property
    def what(self) -> str:
        """For the journal."""
        return f"delete topic {self.topic}"

    @property
    def thing(self) -> str:
        """The topic."""
        return self.topic

    def check(self) -> None:
        """:raises ProtectedTopicError: Kafka, or Partiscope, keeps its own state there."""
        check_topic("delete", self.topic)

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """The partitions that go. A topic created anew under the name makes the preview stale."""
        (topic,) = await context.admin.topics([self.topic])
        replicas = counted(sum(len(each.replicas) for each in topic.partitions), "replica")
        partitions = counted(len(topic.partitions), "partition")
        words = f"{self.topic}: {partitions}, {replicas} are deleted"
        return Effect(
            command=self,
            changes=(Change("partitions", len(topic.partitions), None, words),),
            notes=(
                "its data is gone for good; producers that create topics may bring back the name",
                *doubts(self.topic),
            ),
            facts=(topic.topic_id, len(topic.partitions)),
        )

    async def perform(self, context: OperationContext) -> Done:
        """Delete it."""
        await context.admin.delete_topic(self.topic)
        return Done(words=f"{self.topic} is deleted", view="topics")
