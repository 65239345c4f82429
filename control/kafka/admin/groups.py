"""Consumer groups over the wire: the GroupsPort. Requests go to each group's coordinator."""

import struct
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from kio.schema.errors import ErrorCode

from control.kafka.admin.streams_topology import StreamsTopology, streams_topology_of
from control.kafka.connection import apis
from control.kafka.connection.retry import retry_passing
from control.kafka.connection.together import together
from control.kafka.connection.wire import Answer, Api, KafkaWire
from control.kafka.errors import (
    IncompleteAnswerError,
    KafkaPortError,
    NoSuchNameError,
    RefusedError,
    UnsupportedApiError,
    only,
    raise_if_refused,
)
from control.kafka.ports import GroupDescription, GroupMember, ListedGroup, ShareOffset
from control.model.ids import TopicPartition

_DEAD: Final = "Dead"
_CONSUMER: Final = "consumer"
"""The protocol type of groups whose assignments name partitions."""
_NO_GENERATION: Final = -1
_RACK_VERSION: Final = 3
"""Of a subscription: the first that tells a rack."""
_GENERATION_BYTES: Final = 4

Read = TypeVar("Read")
_OF_ANOTHER_KIND: Final = frozenset({ErrorCode.group_id_not_found, ErrorCode.unsupported_version})
"""The group is of another kind; or a broker knows the request, but has this kind switched off."""


class KafkaGroups:
    """Groups of one cluster."""

    def __init__(self, wire: KafkaWire) -> None:
        self._wire = wire

    async def list_groups(self) -> tuple[ListedGroup, ...]:
        """Groups of all live brokers, by name.

        :raises UnreachableError: no broker answers, or one of them does not.
        """
        brokers = await self._wire.live_nodes()
        async with together() as group:
            answers = [group.create_task(self._groups_of(broker)) for broker in brokers]
        listed = (it for answer in answers for it in answer.result())
        return tuple(sorted(listed, key=lambda it: it.group_id))

    async def describe_group(self, group_id: str) -> GroupDescription:
        """State and members of a group of any type.

        :raises NoSuchNameError: there is none.
        """
        try:
            return await self._described(group_id)
        except RefusedError as error:
            if error.code is not ErrorCode.group_id_not_found:
                raise
            with suppress(KafkaPortError):
                found = await self.list_groups()
                error = NoSuchNameError("group", group_id, known=[it.group_id for it in found])
            raise error

    async def _described(self, group_id: str) -> GroupDescription:
        for api, read in _MODERN:
            try:
                return await self._describe_modern_group(group_id, api, read)
            except UnsupportedApiError:
                pass
            except RefusedError as error:
                if error.code not in _OF_ANOTHER_KIND:
                    raise
        return await self._describe_classic_group(group_id)

    async def streams_topology(self, group_id: str) -> tuple[str, StreamsTopology | None]:
        """State of a streams group, and its topology where a member has told it.

        :raises RefusedError: GROUP_ID_NOT_FOUND.
        """

        def read(answer: Answer) -> tuple[str, StreamsTopology | None]:
            group = only(answer.message.groups, what=f"group {group_id}")
            raise_if_refused(group.error_code, what=f"group {group_id}")
            return group.group_state, streams_topology_of(group)

        fields = {"group_ids": (group_id,)}
        return await self._at_coordinator(group_id, apis.STREAMS_GROUP_DESCRIBE, fields, read)

    async def share_offsets(self, group_id: str) -> Mapping[TopicPartition, ShareOffset]:
        """Start offset and lag of every partition of a share group."""
        fields = {"groups": ({"group_id": group_id, "topics": None},)}

        def read(answer: Answer) -> dict[TopicPartition, ShareOffset]:
            group = only(answer.message.groups, what=f"group {group_id}")
            raise_if_refused(group.error_code, what=f"group {group_id}")
            return share_offsets_of(group)

        api = apis.DESCRIBE_SHARE_GROUP_OFFSETS
        return await self._at_coordinator(group_id, api, fields, read)

    async def committed_offsets(self, group_id: str) -> Mapping[TopicPartition, int]:
        """Committed offsets of every partition; one without a commit is absent."""
        fields = {
            "group_id": group_id,
            "topics": None,
            "groups": ({"group_id": group_id, "topics": None},),
        }

        def offsets(answer: Answer) -> dict[TopicPartition, int]:
            body = answer.message
            if hasattr(body, "groups"):
                body = only(body.groups, what=f"group {group_id}")
            raise_if_refused(getattr(body, "error_code", ErrorCode.none), what=f"group {group_id}")
            found, unknown = read_commits(body.topics)
            for key, code in unknown.items():
                raise_if_refused(code, what=f"offset of {group_id} on {key}")
            return found

        return await self._at_coordinator(group_id, apis.OFFSET_FETCH, fields, offsets)

    async def commit_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set offsets of a group that has no members.

        :raises RefusedError: the group is active (UNKNOWN_MEMBER_ID), a partition is unknown.
        """
        fields = {
            "group_id": group_id,
            "generation_id_or_member_epoch": _NO_GENERATION,
            "topics": _offset_topics(offsets),
        }

        def check(answer: Answer) -> None:
            _check_partitions(answer, offsets, group_id)

        await self._at_coordinator(group_id, apis.OFFSET_COMMIT, fields, check)

    async def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget commits of partitions that no member of the group reads.

        :raises RefusedError: GROUP_SUBSCRIBED_TO_TOPIC, GROUP_ID_NOT_FOUND.
        """
        by_topic: dict[str, list[int]] = {}
        wanted = sorted(partitions)
        for key in wanted:
            by_topic.setdefault(key.topic, []).append(key.partition)
        topics = tuple(
            {"name": name, "partitions": tuple({"partition_index": index} for index in indexes)}
            for name, indexes in by_topic.items()
        )

        def check(answer: Answer) -> None:
            what = f"deleting offsets of group {group_id}"
            raise_if_refused(answer.message.error_code, what=what)
            _check_partitions(answer, wanted, group_id)

        fields = {"group_id": group_id, "topics": topics}
        await self._at_coordinator(group_id, apis.OFFSET_DELETE, fields, check)

    async def alter_share_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int]
    ) -> None:
        """Set start offsets of a share group that has no members.

        :raises RefusedError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, a partition is unknown.
        """
        topics: dict[str, list[dict[str, int]]] = {}
        for key, start in sorted(offsets.items()):
            partition = {"partition_index": key.partition, "start_offset": start}
            topics.setdefault(key.topic, []).append(partition)
        named = ({"topic_name": name, "partitions": tuple(it)} for name, it in topics.items())

        def check(answer: Answer) -> None:
            _check_share_offsets(answer, f"start offsets of share group {group_id}")
            told = {
                TopicPartition(topic.topic_name, partition.partition_index): partition
                for topic in answer.message.responses
                for partition in topic.partitions
            }
            for key in offsets:
                what = f"start offset of share group {group_id} on {key}"
                _check_told(told.get(key), what)

        fields = {"group_id": group_id, "topics": tuple(named)}
        await self._at_coordinator(group_id, apis.ALTER_SHARE_GROUP_OFFSETS, fields, check)

    async def delete_share_offsets(self, group_id: str, topics: Iterable[str]) -> None:
        """Forget topics of a share group that has no members.

        :raises RefusedError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND.
        """
        named = tuple({"topic_name": name} for name in sorted(topics))

        def check(answer: Answer) -> None:
            _check_share_offsets(answer, f"deleting offsets of share group {group_id}")
            told = {topic.topic_name: topic for topic in answer.message.responses}
            for topic in named:
                name = topic["topic_name"]
                _check_told(told.get(name), f"offsets of share group {group_id} on {name}")

        fields = {"group_id": group_id, "topics": named}
        await self._at_coordinator(group_id, apis.DELETE_SHARE_GROUP_OFFSETS, fields, check)

    async def delete_group(self, group_id: str) -> None:
        """Forget an empty group and its offsets.

        :raises RefusedError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND.
        """

        def check(answer: Answer) -> None:
            what = f"deleting group {group_id}"
            raise_if_refused(only(answer.message.results, what=what).error_code, what=what)

        fields = {"groups_names": (group_id,)}
        await self._at_coordinator(group_id, apis.DELETE_GROUPS, fields, check)

    async def coordinator(self, group_id: str) -> int:
        """Broker id of a group's coordinator."""
        fields = {"key": group_id, "key_type": 0, "coordinator_keys": (group_id,)}

        async def find() -> int:
            answer = await self._wire.send(apis.FIND_COORDINATOR, fields)
            found = answer.message
            if hasattr(found, "coordinators"):
                found = only(found.coordinators, what=f"the coordinator of group {group_id}")
            message = getattr(found, "error_message", None)
            raise_if_refused(found.error_code, what=f"group {group_id}", message=message)
            return int(found.node_id)

        return await retry_passing(find)

    async def _groups_of(self, broker: int) -> list[ListedGroup]:
        async def list_them() -> list[ListedGroup]:
            answer = await self._wire.send(apis.LIST_GROUPS, {}, node_id=broker)
            raise_if_refused(answer.message.error_code, what=f"groups of broker {broker}")
            return [listed_group(group) for group in answer.message.groups]

        return await retry_passing(list_them)

    async def _describe_modern_group(
        self, group_id: str, api: Api, describe: Callable[[Any], GroupDescription]
    ) -> GroupDescription:
        def read(answer: Answer) -> GroupDescription:
            group = only(answer.message.groups, what=f"group {group_id}")
            raise_if_refused(group.error_code, what=f"group {group_id}")
            return describe(group)

        return await self._at_coordinator(group_id, api, {"group_ids": (group_id,)}, read)

    async def _describe_classic_group(self, group_id: str) -> GroupDescription:
        def read(answer: Answer) -> GroupDescription:
            group = only(answer.message.groups, what=f"group {group_id}")
            raise_if_refused(group.error_code, what=f"group {group_id}")
            # Before version 6 an unknown group is answered as a dead one.
            if group.group_state == _DEAD:
                raise RefusedError(ErrorCode.group_id_not_found, what=f"group {group_id}")
            return classic_description(group)

        fields = {"groups": (group_id,)}
        return await self._at_coordinator(group_id, apis.DESCRIBE_GROUPS, fields, read)

    async def _at_coordinator(
        self, group_id: str, api: Api, fields: Mapping[str, Any], read: Callable[[Answer], Read]
    ) -> Read:
        async def ask() -> Read:
            node_id = await self.coordinator(group_id)
            return read(await self._wire.send(api, fields, node_id=node_id))

        return await retry_passing(ask)


def read_commits(
    topics: Iterable[Any],
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, ErrorCode]]:
    """The commits of an OffsetFetch answer, and which partitions do not tell theirs, and why. One
    in neither has no commit."""
    found: dict[TopicPartition, int] = {}
    unknown: dict[TopicPartition, ErrorCode] = {}
    for topic in topics:
        for partition in topic.partitions:
            key = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code is not ErrorCode.none:
                unknown[key] = partition.error_code
            elif partition.committed_offset >= 0:
                found[key] = partition.committed_offset
    return found, unknown


def _check_partitions(answer: Answer, asked: Iterable[TopicPartition], group_id: str) -> None:
    """:raises KafkaPortError: one of them is refused, or not told of."""
    told = {
        TopicPartition(topic.name, partition.partition_index): partition.error_code
        for topic in answer.message.topics
        for partition in topic.partitions
    }
    for key, code in told.items():
        raise_if_refused(code, what=f"offset of {group_id} on {key}")
    for key in asked:
        if key not in told:
            raise IncompleteAnswerError(f"offset of {group_id} on {key}")


def _check_told(result: Any, what: str) -> None:
    if result is None:
        raise IncompleteAnswerError(what)
    raise_if_refused(result.error_code, what=what, message=result.error_message)


def _check_share_offsets(answer: Answer, what: str) -> None:
    message = answer.message
    raise_if_refused(message.error_code, what=what, message=message.error_message)


def consumer_description(group: Any) -> GroupDescription:
    """A group of a ConsumerGroupDescribe response."""
    return _modern_description(group, _CONSUMER)


def share_description(group: Any) -> GroupDescription:
    """A group of a ShareGroupDescribe response."""
    return _modern_description(group, "share")


def streams_description(group: Any) -> GroupDescription:
    """A group of a StreamsGroupDescribe response: members own what their active tasks read."""
    topics = {it.subtopology_id: _read_by(it) for it in _subtopologies(group)}
    return GroupDescription(
        group_id=group.group_id,
        state=group.group_state,
        protocol="",
        members=tuple(_streams_member(member, topics) for member in group.members),
        group_type="streams",
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
    )


def _subtopologies(group: Any) -> Iterable[Any]:
    return (group.topology.subtopologies or ()) if group.topology is not None else ()


def _read_by(subtopology: Any) -> tuple[str, ...]:
    """Source and repartition topics, whose offsets are lag; changelogs are restored, not read."""
    repartition = (topic.name for topic in subtopology.repartition_source_topics)
    return (*subtopology.source_topics, *repartition)


def _streams_member(member: Any, topics: Mapping[str, Iterable[str]]) -> GroupMember:
    owned = (
        TopicPartition(topic, partition)
        for tasks in member.assignment.active_tasks
        for topic in topics.get(tasks.subtopology_id, ())
        for partition in tasks.partitions
    )
    return GroupMember(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host.removeprefix("/"),
        assignment=tuple(sorted(owned)),
        rack=member.rack_id or "",
    )


def _modern_description(group: Any, group_type: str) -> GroupDescription:
    """A group of a ConsumerGroupDescribe or ShareGroupDescribe response."""
    return GroupDescription(
        group_id=group.group_id,
        state=group.group_state,
        protocol=group.assignor_name,
        members=tuple(map(_modern_member, group.members)),
        group_type=group_type,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
    )


def share_offsets_of(group: Any) -> dict[TopicPartition, ShareOffset]:
    """Offsets of a group of a DescribeShareGroupOffsets response.

    :raises RefusedError: the broker does not tell one of them.
    """
    for topic in group.topics:
        for partition in topic.partitions:
            key = TopicPartition(topic.topic_name, partition.partition_index)
            raise_if_refused(partition.error_code, what=f"offset of {group.group_id} on {key}")
    return known_share_offsets(group)


def known_share_offsets(group: Any) -> dict[TopicPartition, ShareOffset]:
    """Those of its offsets that the broker tells; -1 is unknown."""
    offsets = {}
    for topic in group.topics:
        for partition in topic.partitions:
            if partition.error_code is not ErrorCode.none:
                continue
            start, lag = partition.start_offset, getattr(partition, "lag", -1)
            offsets[TopicPartition(topic.topic_name, partition.partition_index)] = ShareOffset(
                start=start if start >= 0 else None, lag=lag if lag >= 0 else None
            )
    return offsets


def classic_description(group: Any) -> GroupDescription:
    """A group of a DescribeGroups response."""
    is_consumer = group.protocol_type == _CONSUMER
    return GroupDescription(
        group_id=group.group_id,
        state=group.group_state,
        protocol=group.protocol_data,
        members=tuple(_classic_member(it, is_consumer=is_consumer) for it in group.members),
        group_type="classic",
    )


def listed_group(group: Any) -> ListedGroup:
    """A group of a ListGroups response."""
    return ListedGroup(
        group_id=group.group_id,
        state=getattr(group, "group_state", ""),
        protocol_type=group.protocol_type,
        group_type=getattr(group, "group_type", ""),
    )


def _offset_topics(offsets: Mapping[TopicPartition, int]) -> tuple[dict[str, Any], ...]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for key, offset in sorted(offsets.items()):
        topics.setdefault(key.topic, []).append(
            {
                "partition_index": key.partition,
                "committed_offset": offset,
                "committed_leader_epoch": -1,
                "committed_metadata": "",
            }
        )
    return tuple({"name": name, "partitions": tuple(ids)} for name, ids in topics.items())


def _modern_member(member: Any) -> GroupMember:
    owned = (
        TopicPartition(topic.topic_name, partition)
        for topic in member.assignment.topic_partitions
        for partition in topic.partitions
    )
    return GroupMember(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host.removeprefix("/"),
        assignment=tuple(sorted(owned)),
        rack=member.rack_id or "",
    )


def _classic_member(member: Any, *, is_consumer: bool) -> GroupMember:
    """Only consumers are assigned partitions: bytes of Connect's workers name none."""
    owned = parse_assignment(bytes(member.member_assignment)) if is_consumer else ()
    return GroupMember(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host.removeprefix("/"),
        assignment=tuple(sorted(owned)),
        rack=parse_rack(bytes(member.member_metadata)) if is_consumer else "",
    )


def parse_assignment(data: bytes) -> Iterable[TopicPartition]:
    """The partitions of a ConsumerProtocolAssignment (version, then topics with partitions).

    Bytes of another protocol (Connect, a custom assignor), or damaged ones, give none.
    """
    owned: list[TopicPartition] = []
    try:
        (topics,) = struct.unpack_from(">xxi", data)
        position = 6
        for _ in range(topics):
            (length,) = struct.unpack_from(">h", data, position)
            name_end = position + 2 + length
            if length < 0 or name_end > len(data):
                return []
            topic = data[position + 2 : name_end].decode()
            (count,) = struct.unpack_from(">i", data, name_end)
            position = name_end + 4
            if count < 0 or position + 4 * count > len(data):
                return []
            partitions = struct.unpack_from(f">{count}i", data, position)
            owned += [TopicPartition(topic, partition) for partition in partitions]
            position += 4 * count
    except (struct.error, UnicodeDecodeError):
        return []
    return owned


def parse_rack(data: bytes) -> str:
    """The rack of a ConsumerProtocolSubscription (from version 3 on); empty: it has none.

    Bytes of another protocol, or damaged ones, give none.
    """
    try:
        version, topics = struct.unpack_from(">hi", data)
        if version < _RACK_VERSION:
            return ""
        at = _after_strings(data, 6, topics)
        (user_data,) = struct.unpack_from(">i", data, at)
        at += 4 + max(0, user_data)
        (owned,) = struct.unpack_from(">i", data, at)
        at += 4
        for _ in range(owned):
            at = _after_strings(data, at, 1)
            (partitions,) = struct.unpack_from(">i", data, at)
            at += 4 + 4 * max(0, partitions)
        (length,) = struct.unpack_from(">h", data, at + _GENERATION_BYTES)
        at += _GENERATION_BYTES + 2
        return data[at : at + max(0, length)].decode()
    except (struct.error, UnicodeDecodeError):
        return ""


def _after_strings(data: bytes, at: int, count: int) -> int:
    for _ in range(count):
        (length,) = struct.unpack_from(">h", data, at)
        at += 2 + max(0, length)
    return at


_MODERN: Final[tuple[tuple[Api, Callable[[Any], GroupDescription]], ...]] = (
    (apis.CONSUMER_GROUP_DESCRIBE, consumer_description),
    (apis.SHARE_GROUP_DESCRIBE, share_description),
    (apis.STREAMS_GROUP_DESCRIBE, streams_description),
)
