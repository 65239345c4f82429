"""Delete a topic."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from control.kafka.acl import AclOperation, Lacking
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.errors import KafkaPortError
from control.kafka.ports import TopicMetadata
from control.model.units import bytes_text, counted
from control.operations.catalogue.fields import REASON, TOPIC
from control.operations.catalogue.forms import Confirmation, OperationForm
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.protected_topics import check_topic, doubts

GROUPS_ASKED_MAX: Final = 200
"""Of a cluster with more groups, the others are told as not asked."""
GROUP_WAIT_S: Final = 5.0
"""In an outage the coordinator of some may be away."""
GROUPS_NAMED_MAX: Final = 10
CLIENTS_NAMED_MAX: Final = 5
_GROUPS: Final = "groups"
WRITTEN_WITHIN_MS: Final = 60_000


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
        """The partitions that go, their bytes, and who uses them. A topic created anew under the
        name makes the preview stale."""
        (topic,) = await context.admin.topics([self.topic])
        replicas = counted(sum(len(each.replicas) for each in topic.partitions), "replica")
        partitions = counted(len(topic.partitions), "partition")
        words = f"{self.topic}: {partitions}, {replicas} are deleted"
        return Effect(
            command=self,
            changes=(Change("partitions", len(topic.partitions), None, words),),
            notes=(
                await _bytes_note(context.admin, topic),
                *await _writers_notes(context.admin, topic),
                *await _readers_notes(context, self.topic),
                *doubts(self.topic),
            ),
            facts=(topic.topic_id, len(topic.partitions)),
        )

    async def perform(self, context: OperationContext) -> Done:
        """Delete it."""
        await context.admin.delete_topic(self.topic)
        return Done(words=f"{self.topic} is deleted", view="topics")


async def _bytes_note(admin: KafkaAdmin, topic: TopicMetadata) -> str:
    gone = "gone for good; producers that create topics may bring back the name"
    try:
        found = await admin.log_dirs(partitions=[each.key for each in topic.partitions])
    except KafkaPortError:
        return f"{topic.name}: its data is {gone}"
    size = sum(replica.size_bytes for each in found for replica in each.replicas)
    return f"{topic.name}: its data, {bytes_text(size)} on all replicas, is {gone}"


async def _writers_notes(admin: KafkaAdmin, topic: TopicMetadata) -> tuple[str, ...]:
    """Whether it is written to; Kafka names no producers."""
    led = [each.key for each in topic.partitions if each.leader >= 0]
    since_ms = time.time_ns() // 1_000_000 - WRITTEN_WITHIN_MS
    try:
        found = await admin.offsets.list_offsets(led, since_ms) if led else {}
    except KafkaPortError:
        return (f"whether producers write to {topic.name} is not known",)
    written = sum(each.offset >= 0 for each in found.values())
    if not written:
        return ()
    where = f"{written:,} of {counted(len(topic.partitions), 'partition')}"
    return (f"producers write to {topic.name}: {where} got records in the last minute",)


async def _readers_notes(context: OperationContext, topic: str) -> tuple[str, ...]:
    """Groups whose members read it, and groups that only committed offsets in it."""
    readers = context.read.get(_GROUPS) or await _groups(context.admin)
    context.read[_GROUPS] = readers
    notes = [*(uses[topic] for uses in readers if topic in uses)]
    more = len(notes) - GROUPS_NAMED_MAX
    others = [uses[""] for uses in readers if "" in uses]
    left = [f"{more:,} more groups use {topic}"] if more > 0 else []
    return (*notes[:GROUPS_NAMED_MAX], *left, *others[:GROUPS_NAMED_MAX])


async def _groups(admin: KafkaAdmin) -> list[Mapping[str, str]]:
    """The use that each group makes of topics, by topic; under no name what is not known."""
    try:
        listed = await admin.groups.list_groups()
    except KafkaPortError:
        return [{"": "which groups read it is not known"}]
    asked = sorted(listed, key=lambda it: (it.state == "Empty", it.group_id))[:GROUPS_ASKED_MAX]
    found = [*await asyncio.gather(*(_uses(admin, each.group_id) for each in asked))]
    if len(listed) > len(asked):
        words = f"{len(listed) - len(asked):,} of {len(listed):,} groups were not asked"
        found.append({"": words})
    return found


async def _uses(admin: KafkaAdmin, group: str) -> Mapping[str, str]:
    try:
        async with asyncio.timeout(GROUP_WAIT_S):
            described = await admin.groups.describe_group(group)
            is_share = described.group_type == "share"
            read = admin.groups.share_offsets if is_share else admin.groups.committed_offsets
            committed = {key.topic for key in await read(group)}
    except (KafkaPortError, TimeoutError):
        return {"": f"which topics group {group} reads is not known"}
    clients: dict[str, list[str]] = {}
    for member in described.members:
        for topic in {key.topic for key in member.assignment}:
            clients.setdefault(topic, []).append(member.client_id)
    return {
        topic: f"group {group} has offsets in {topic}, and no member that reads it"
        for topic in committed
    } | {
        topic: f"group {group} reads {topic}: {counted(len(ids), 'member')} "
        f"({', '.join(sorted(set(ids))[:CLIENTS_NAMED_MAX])})"
        for topic, ids in clients.items()
    }
