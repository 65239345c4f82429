"""KafkaAdmin: the AdminPort over the wire.

Reassignments and elections live in control.kafka.admin.reassignments, which brokers there are in
control.kafka.admin.registrations, groups in control.kafka.admin.groups;
KafkaAdmin joins them, so one object with one set of connections is the whole cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from control.kafka.admin.groups import KafkaGroups
from control.kafka.admin.offsets import KafkaOffsets
from control.kafka.admin.reassignments import KafkaReassignments
from control.kafka.admin.registrations import KafkaRegistrations
from control.kafka.connection import apis
from control.kafka.connection.connections import settings_of
from control.kafka.connection.retry import ask_controller, retry_passing
from control.kafka.connection.settings import KafkaSettings
from control.kafka.connection.wire import KafkaWire
from control.kafka.errors import (
    IncompleteAnswerError,
    NoSuchNameError,
    RefusedError,
    UnreachableError,
    only,
    raise_if_refused,
)
from control.kafka.ports import (
    BrokerNode,
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    ConfigScope,
    ConfigSynonym,
    NewTopic,
    PartitionMetadata,
    TopicMetadata,
)

TOGETHER_MAX: Final = 500
"""Resources in one request for configs: Kafka's controller writes 10,000 records at once."""
_SET: Final = 0
_DELETE: Final = 1
_SOURCE_DEFAULT: Final = 5
_VISIBLE_POLLS_MAX: Final = 300
_VISIBLE_POLL_S: Final = 0.05


class KafkaTopics:
    """Topics and configs of one cluster: the TopicsPort."""

    def __init__(self, wire: KafkaWire) -> None:
        self._wire = wire

    async def describe_cluster(self) -> ClusterDescription:
        """Live brokers and the controller, by Metadata (every version has it)."""
        answer = await self._wire.send(apis.METADATA, {"topics": ()})
        return self._take_cluster(answer.message)

    async def topics(
        self, names: Iterable[str] | None = None, *, leaves_out_unknown: bool = False
    ) -> tuple[TopicMetadata, ...]:
        """All topics, or the named ones; `leaves_out_unknown`: as far as they exist.

        :raises NoSuchNameError: a named topic does not exist.
        """
        wanted = None if names is None else tuple({"name": name} for name in names)
        if wanted == ():
            return ()
        fields = {"topics": wanted, "allow_auto_topic_creation": False}
        answer = await self._wire.send(apis.METADATA, fields)
        self._take_cluster(answer.message)
        unknown = ErrorCode.unknown_topic_or_partition if leaves_out_unknown else None
        told = [topic for topic in answer.message.topics if topic.error_code is not unknown]
        for topic in told:
            if topic.error_code is ErrorCode.unknown_topic_or_partition:
                known = (each.name for each in await self.topics())
                raise NoSuchNameError("topic", topic.name, known=known)
            if topic.error_code is not ErrorCode.leader_not_available:
                raise_if_refused(topic.error_code, what=f"topic {topic.name}")
        answered = {topic.name for topic in answer.message.topics}
        for each in wanted or ():
            if each["name"] not in answered:
                raise IncompleteAnswerError(f"topic {each['name']}")
        return tuple(sorted(map(_topic_of, told), key=lambda t: t.name))

    async def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> None:
        """Create, and wait until every partition has a leader that any broker knows.

        :raises RefusedError: the name is taken, a number or config is not acceptable.
        """
        fields = {
            "topics": (_creatable(topic),),
            "timeout": self._wire.settings.request_timeout_ms,
            "validate_only": validate_only,
        }

        async def create(node_id: int | None) -> None:
            answer = await self._wire.send(
                apis.CREATE_TOPICS, fields, node_id=node_id, is_idempotent=False
            )
            what = f"creating topic {topic.name}"
            result = only(answer.message.topics, what=what)
            message = getattr(result, "error_message", None)
            raise_if_refused(result.error_code, what=what, message=message)

        await ask_controller(self._wire, create, is_idempotent=False)
        if not validate_only:
            await self._wait_until_led(topic.name, max(1, topic.partitions))

    async def delete_topic(self, name: str) -> None:
        """Delete a topic and its data.

        :raises RefusedError: it does not exist, or deletion is disabled.
        """
        fields = {
            "topics": ({"name": name, "topic_id": None},),
            "topic_names": (name,),
            "timeout": self._wire.settings.request_timeout_ms,
        }

        async def delete(node_id: int | None) -> None:
            answer = await self._wire.send(
                apis.DELETE_TOPICS, fields, node_id=node_id, is_idempotent=False
            )
            what = f"deleting topic {name}"
            result = only(answer.message.responses, what=what)
            message = getattr(result, "error_message", None)
            raise_if_refused(result.error_code, what=what, message=message)

        await ask_controller(self._wire, delete, is_idempotent=False)

    async def create_partitions(self, topic: str, count: int) -> None:
        """Raise the number of partitions to `count`, and wait until the new ones are led.

        :raises RefusedError: the topic is unknown or has that many already.
        """
        fields = {
            "topics": ({"name": topic, "count": count, "assignments": None},),
            "timeout": self._wire.settings.request_timeout_ms,
            "validate_only": False,
        }

        async def create(node_id: int | None) -> None:
            answer = await self._wire.send(
                apis.CREATE_PARTITIONS, fields, node_id=node_id, is_idempotent=False
            )
            what = f"adding partitions to {topic}"
            result = only(answer.message.results, what=what)
            raise_if_refused(result.error_code, what=what, message=result.error_message)

        await ask_controller(self._wire, create, is_idempotent=False)
        await self._wait_until_led(topic, count)

    async def describe_configs(
        self,
        resource: ConfigResource,
        names: Iterable[str] | None = None,
        *,
        is_explained: bool = False,
    ) -> tuple[ConfigEntry, ...]:
        """Every config (or those of the names that there are) with its value and source, by name;
        a broker is asked about itself, and to list them all costs it milliseconds.
        `is_explained`: with synonyms and documentation as well.

        :raises NoSuchNameError: there is no such topic.
        :raises RefusedError: the broker is unknown.
        """
        what = f"configs of {resource.scope.name.lower()} {resource.name}"
        told = await self._describe(
            _owner(resource), [resource], names, with_synonyms=is_explained, with_texts=is_explained
        )
        result = only(told, what=what)
        if result.error_code is ErrorCode.unknown_topic_or_partition:
            await self.topics([resource.name])
        raise_if_refused(result.error_code, what=what, message=result.error_message)
        return _entries_of(result)

    async def describe_many_configs(
        self, resources: Iterable[ConfigResource], names: Iterable[str] | None = None
    ) -> dict[ConfigResource, tuple[ConfigEntry, ...]]:
        """describe_configs of several resources with synonyms, TOGETHER_MAX at a time; topics
        that do not exist are left out.

        :raises RefusedError: a broker is unknown, no right to describe.
        """
        wanted = None if names is None else tuple(names)
        found = {}
        for node_id, some in _together(resources):
            for result in await self._describe(node_id, some, wanted, with_synonyms=True):
                scope = ConfigScope(int(result.resource_type))
                resource = ConfigResource(scope=scope, name=result.resource_name)
                if result.error_code is not ErrorCode.unknown_topic_or_partition:
                    what = f"configs of {scope.name.lower()} {resource.name}"
                    raise_if_refused(result.error_code, what=what, message=result.error_message)
                    found[resource] = _entries_of(result)
        return found

    async def _describe(
        self,
        node_id: int | None,
        resources: Sequence[ConfigResource],
        names: Iterable[str] | None,
        *,
        with_synonyms: bool = False,
        with_texts: bool = False,
    ) -> tuple[Any, ...]:
        keys = None if names is None else tuple(names)
        asked = (
            {
                "resource_type": int(resource.scope),
                "resource_name": resource.name,
                "configuration_keys": keys,
            }
            for resource in resources
        )
        fields = {
            "resources": tuple(asked),
            "include_synonyms": with_synonyms,
            "include_documentation": with_texts,
        }
        answer = await self._wire.send(apis.DESCRIBE_CONFIGS, fields, node_id=node_id)
        return tuple(answer.message.results)

    async def alter_configs(
        self,
        resource: ConfigResource,
        changes: Mapping[str, str | None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set (or, with null, remove) single configs; others stay.

        :raises RefusedError: unknown config, bad value, unknown topic.
        """
        alterations = [_alteration(resource, changes)]
        await self._alter(_owner(resource), alterations, validate_only=validate_only)

    async def alter_many_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> None:
        """alter_configs for several resources, TOGETHER_MAX at a time; each broker's configs go
        to that broker."""
        for node_id, some in _together(changes):
            await self._alter(node_id, [_alteration(one, changes[one]) for one in some])

    async def _alter(
        self,
        node_id: int | None,
        resources: list[dict[str, Any]],
        *,
        validate_only: bool = False,
    ) -> None:
        fields = {"resources": tuple(resources), "validate_only": validate_only}

        async def alter() -> None:
            answer = await self._wire.send(apis.ALTER_CONFIGS, fields, node_id=node_id)
            for result in answer.message.responses:
                what = f"changing configs of {result.resource_name}"
                raise_if_refused(result.error_code, what=what, message=result.error_message)

        await retry_passing(alter)

    def _take_cluster(self, message: Any) -> ClusterDescription:
        self._wire.set_addresses({b.node_id: (b.host, b.port) for b in message.brokers})
        brokers = (
            BrokerNode(id=b.node_id, host=b.host, port=b.port, rack=b.rack) for b in message.brokers
        )
        controller_id = message.controller_id
        return ClusterDescription(
            cluster_id=getattr(message, "cluster_id", None) or "",
            controller_id=None if controller_id < 0 else controller_id,
            brokers=tuple(sorted(brokers, key=lambda b: b.id)),
        )

    async def _wait_until_led(self, name: str, partitions: int) -> None:
        for _ in range(_VISIBLE_POLLS_MAX):
            if await self._is_led(name, partitions):
                return
            await asyncio.sleep(_VISIBLE_POLL_S)
        raise UnreachableError(
            f"topic {name} was created but is not ready",
            reason=f"no leader for all partitions in {_VISIBLE_POLLS_MAX * _VISIBLE_POLL_S:.0f} s",
            next_step="look at the brokers: `partiscope status`",
        )

    async def _is_led(self, name: str, partitions: int) -> bool:
        try:
            found = await self.topics([name], leaves_out_unknown=True)
        except RefusedError:
            return False
        led = [[p.leader >= 0 for p in topic.partitions] for topic in found]
        return any(len(each) >= partitions and all(each) for each in led)


class KafkaAdmin(KafkaTopics, KafkaReassignments, KafkaRegistrations):
    """A whole cluster: topics, configs, reassignments; `groups` and `offsets` beside them.

    Use as an async context manager.
    """

    def __init__(self, wire: KafkaWire) -> None:
        super().__init__(wire)
        self.wire = wire
        self.groups = KafkaGroups(wire)
        self.offsets = KafkaOffsets(wire, self)

    @classmethod
    def to(cls, settings: KafkaSettings | str) -> KafkaAdmin:
        """An admin for a cluster; nothing is sent yet."""
        return cls(KafkaWire(settings_of(settings)))

    async def close(self) -> None:
        """Close the connections."""
        await self.wire.close()

    async def __aenter__(self) -> KafkaAdmin:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _owner(resource: ConfigResource) -> int | None:
    """The broker that must be asked: dynamic configs of a broker go to that broker."""
    is_one_broker = resource.scope is ConfigScope.BROKER and resource.name != ""
    return int(resource.name) if is_one_broker else None


def _together(
    resources: Iterable[ConfigResource],
) -> Iterator[tuple[int | None, list[ConfigResource]]]:
    """(who must be asked, what of), a request each."""
    by_owner: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        by_owner.setdefault(_owner(resource), []).append(resource)
    for owner, owned in by_owner.items():
        for start in range(0, len(owned), TOGETHER_MAX):
            yield owner, owned[start : start + TOGETHER_MAX]


def _entries_of(result: Any) -> tuple[ConfigEntry, ...]:
    return tuple(sorted(map(_config_of, result.configs), key=lambda entry: entry.name))


def _alteration(resource: ConfigResource, configs: Mapping[str, str | None]) -> dict[str, Any]:
    return {
        "resource_type": int(resource.scope),
        "resource_name": resource.name,
        "configs": tuple(
            {
                "name": name,
                "config_operation": _DELETE if value is None else _SET,
                "value": value,
            }
            for name, value in sorted(configs.items())
        ),
    }


def _creatable(topic: NewTopic) -> dict[str, Any]:
    assignment = topic.assignment or {}
    return {
        "name": topic.name,
        "num_partitions": -1 if assignment else topic.partitions,
        "replication_factor": -1 if assignment else topic.replication_factor,
        "assignments": tuple(
            {"partition_index": partition, "broker_ids": tuple(replicas)}
            for partition, replicas in sorted(assignment.items())
        ),
        "configs": tuple(
            {"name": name, "value": value} for name, value in sorted((topic.configs or {}).items())
        ),
    }


def _topic_of(topic: Any) -> TopicMetadata:
    topic_id = getattr(topic, "topic_id", None) or None
    partitions = (_partition_of(topic.name, topic_id, p) for p in topic.partitions)
    return TopicMetadata(
        name=topic.name,
        topic_id=topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(sorted(partitions, key=lambda p: p.partition)),
    )


def _partition_of(topic: str, topic_id: UUID | None, partition: Any) -> PartitionMetadata:
    return PartitionMetadata(
        topic=topic,
        partition=partition.partition_index,
        leader=partition.leader_id,
        leader_epoch=getattr(partition, "leader_epoch", -1),
        replicas=tuple(partition.replica_nodes),
        isr=tuple(partition.isr_nodes),
        offline_replicas=tuple(getattr(partition, "offline_replicas", ())),
        topic_id=topic_id,
        is_leader_hidden=getattr(partition, "error_code", None) is ErrorCode.listener_not_found,
    )


def _config_of(config: Any) -> ConfigEntry:
    return ConfigEntry(
        name=config.name,
        value=config.value,
        is_default=config.config_source == _SOURCE_DEFAULT,
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
        source=config.config_source,
        type=getattr(config, "config_type", 0),
        documentation=getattr(config, "documentation", None) or "",
        synonyms=tuple(ConfigSynonym(it.name, it.value, it.source) for it in config.synonyms),
    )
