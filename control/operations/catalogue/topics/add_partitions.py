"""Add partitions to a topic."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from control.kafka.acl import AclOperation, Lacking
from control.messages.forecast import forecast, keys_to_preview, moving_words
from control.messages.partitioners import KeyRule
from control.model.units import counted
from control.operations import checks
from control.operations.catalogue.fields import REASON, TOPIC
from control.operations.catalogue.forms import Confirmation, FieldKind, FormField, OperationForm
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.errors import InvalidInputError
from control.operations.protected_topics import check_topic, doubts


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions(Operation):
    """Kafka only adds partitions; records stay where they are."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="add_partitions",
        key="a",
        title="Add partitions",
        help="keys may land on other partitions afterwards; consumers rebalance",
        submit_label="Add",
        confirmation=Confirmation.TYPED,
        fields=(
            TOPIC,
            FormField(
                name="partitions",
                label="New number",
                kind=FieldKind.NUMBER,
                is_required=True,
                check=checks.whole(1, checks.PARTITIONS_MAX),
            ),
            REASON,
        ),
    )
    RIGHTS: ClassVar[Lacking] = ((AclOperation.ALTER, "topic"),)

    topic: str
    partitions: int
    """How many afterwards."""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        partitions = int(fields["partitions"])
        return cls(topic=fields["topic"], partitions=partitions, reason=fields["reason"])

    @property
    def what(self) -> str:
        """For the journal."""
        return f"add partitions to {self.topic}"

    @property
    def thing(self) -> str:
        """The topic: partitions cannot be removed again."""
        return self.topic

    def check(self) -> None:
        """:raises ProtectedTopicError: its owner would not find its keys again."""
        check_topic("add_partitions", self.topic)

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """How many there are now.

        :raises InvalidInputError: not more than now.
        """
        (topic,) = await context.admin.topics([self.topic])
        now = len(topic.partitions)
        if self.partitions <= now:
            has = f"{self.topic} has {counted(now, 'partition')}, and their number only grows"
            raise InvalidInputError({"partitions": f"{has}: name one above {now:,}"})
        words = f"{self.topic}: {now:,} → {self.partitions:,} partitions"
        return Effect(
            command=self,
            changes=(Change("partitions", now, self.partitions, words),),
            notes=(
                *_moving_keys(now, self.partitions),
                "consumers rebalance; a key's older records stay on their partition",
                "partitions cannot be removed again",
                *doubts(self.topic),
            ),
            facts=(topic.topic_id, now),
        )

    async def perform(self, context: OperationContext) -> Done:
        """Add them and wait until they are led."""
        await context.admin.create_partitions(self.topic, self.partitions)
        words = f"{self.topic} has {self.partitions:,} partitions"
        return Done(words=words, view="topic", params={"topic": self.topic})


def _moving_keys(now: int, then: int) -> Iterator[str]:
    """How many keys land elsewhere from then on, by each client's rule."""
    keys = keys_to_preview(None)
    for rule in KeyRule:
        found = forecast(keys, partitions=now, rule=rule, then=then)
        yield f"by {rule} ({rule.client}) {moving_words(found)}"
