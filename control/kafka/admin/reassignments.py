"""Where replicas live and who leads: the ReassignmentPort over the wire."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from control.kafka.acl import NO_BITS, AclOperation, Grants, Lacking, bits_of_topics
from control.kafka.connection import apis
from control.kafka.connection.retry import ask_controller
from control.kafka.connection.wire import KafkaWire
from control.kafka.errors import (
    IncompleteAnswerError,
    KafkaPortError,
    RefusedError,
    UnsupportedApiError,
    raise_if_refused,
)
from control.kafka.ports import (
    ElectionType,
    LogDir,
    MissingRight,
    OngoingReassignment,
    ReplicaLog,
)
from control.model.ids import TopicPartition

REASSIGN_RIGHTS: Final[Lacking] = (
    (AclOperation.ALTER, "cluster"),
    # Throttles: rates are configs of brokers, throttled replicas are configs of topics.
    (AclOperation.ALTER_CONFIGS, "cluster"),
    (AclOperation.ALTER_CONFIGS, "topic"),
)
_DONE_ALREADY: Final = (ErrorCode.none, ErrorCode.election_not_needed)


class KafkaReassignments:
    """Reassignments, elections and log directories of one cluster."""

    def __init__(self, wire: KafkaWire) -> None:
        self._wire = wire

    async def missing_rights(self, topics: Iterable[str]) -> tuple[MissingRight, ...]:
        """Rights that we lack to reassign these topics with a throttle, as far as brokers tell."""
        asked = {"include_cluster_authorized_operations": True}
        try:
            cluster = (await self._wire.send(apis.DESCRIBE_CLUSTER, asked)).message
        except UnsupportedApiError:
            return ()
        fields = {
            "topics": tuple({"name": name} for name in sorted(set(topics))),
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": True,
        }
        named = (await self._wire.send(apis.METADATA, fields)).message.topics
        bits = {"cluster": cluster.cluster_authorized_operations, "topic": bits_of_topics(named)}
        grants = Grants.to(self._wire.settings)
        return tuple(
            MissingRight(
                operation=operation.name,
                resource=resource,
                grant=grants.commands(((operation, resource),))[0],
            )
            for operation, resource in REASSIGN_RIGHTS
            if bits[resource] != NO_BITS and not bits[resource] >> operation & 1
        )

    async def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> Mapping[TopicPartition, Exception]:
        """Start (or, with null, cancel) reassignments; the answer names those refused.

        The guard of KIP-860 is sent where the broker knows it (Kafka 4.1).

        :raises RefusedError: the request as a whole was refused.
        """
        if not targets:
            return {}
        fields = {
            "timeout": self._wire.settings.request_timeout_ms,
            "allow_replication_factor_change": allow_replication_factor_change,
            "topics": tuple(
                {"name": topic, "partitions": tuple(partitions)}
                for topic, partitions in _by_topic(targets).items()
            ),
        }

        async def alter(node_id: int | None) -> Mapping[TopicPartition, Exception]:
            answer = await self._wire.send(apis.ALTER_REASSIGNMENTS, fields, node_id=node_id)
            message = answer.message
            raise_if_refused(
                message.error_code, what="the reassignment", message=message.error_message
            )
            return _refusals(message.responses, targets)

        return await ask_controller(self._wire, alter)

    async def list_reassignments(self) -> tuple[OngoingReassignment, ...]:
        """All running reassignments, by name."""
        fields = {"timeout": self._wire.settings.request_timeout_ms, "topics": None}

        async def list_all(node_id: int | None) -> tuple[OngoingReassignment, ...]:
            answer = await self._wire.send(apis.LIST_REASSIGNMENTS, fields, node_id=node_id)
            message = answer.message
            what = "listing reassignments"
            raise_if_refused(message.error_code, what=what, message=message.error_message)
            return tuple(sorted(_ongoing(message.topics), key=lambda r: r.key))

        return await ask_controller(self._wire, list_all)

    async def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None,
        election: ElectionType = ElectionType.PREFERRED,
    ) -> Mapping[TopicPartition, Exception]:
        """Elect for the given partitions or all; the answer names those refused."""
        fields = {
            "election_type": int(election),
            "topic_partitions": None if partitions is None else _grouped(partitions),
            "timeout": self._wire.settings.request_timeout_ms,
        }

        async def elect(node_id: int | None) -> Mapping[TopicPartition, Exception]:
            answer = await self._wire.send(apis.ELECT_LEADERS, fields, node_id=node_id)
            whole_error = getattr(answer.message, "error_code", ErrorCode.none)
            raise_if_refused(whole_error, what="the election")
            refused = _election_refusals(answer.message.replica_election_results)
            for error in refused.values():
                if error.code is ErrorCode.not_controller:
                    raise error  # told of each partition: none was elected
            return refused

        return await ask_controller(self._wire, elect)

    async def log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        *,
        partitions: Iterable[TopicPartition] | None = None,
    ) -> tuple[LogDir, ...]:
        """Log directories, failed ones too, with the bytes of each replica, of all partitions or
        the named ones: from the named brokers, or from those live ones that answer.

        :raises KafkaPortError: a named broker does not answer, or no live one does.
        """
        topics = None if partitions is None else _grouped(partitions)
        asked = sorted(await self._wire.live_nodes() if brokers is None else brokers)
        answers = await asyncio.gather(
            *(self._log_dirs_of(broker, topics) for broker in asked), return_exceptions=True
        )
        failed = [answer for answer in answers if isinstance(answer, BaseException)]
        may_lack = brokers is None and len(failed) < len(answers)
        for error in failed:
            if not (may_lack and isinstance(error, KafkaPortError)):
                raise error
        told = (answer for answer in answers if not isinstance(answer, BaseException))
        return tuple(log_dir for answer in told for log_dir in answer)

    async def _log_dirs_of(self, broker: int, topics: Any) -> list[LogDir]:
        fields = {"topics": topics}
        answer = await self._wire.send(apis.DESCRIBE_LOG_DIRS, fields, node_id=broker)
        whole_error = getattr(answer.message, "error_code", ErrorCode.none)
        raise_if_refused(whole_error, what=f"describing log directories of broker {broker}")
        return [log_dir_of(broker, result) for result in answer.message.results]


def _by_topic(
    targets: Mapping[TopicPartition, Sequence[int] | None],
) -> dict[str, list[dict[str, Any]]]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for key, replicas in sorted(targets.items(), key=lambda item: item[0]):
        replica_ids = None if replicas is None else tuple(replicas)
        partition = {"partition_index": key.partition, "replicas": replica_ids}
        topics.setdefault(key.topic, []).append(partition)
    return topics


def _refusals(
    topics: Iterable[Any], asked: Iterable[TopicPartition]
) -> dict[TopicPartition, Exception]:
    refused: dict[TopicPartition, Exception] = {
        key: IncompleteAnswerError(f"moving {key}") for key in asked
    }
    for topic in topics:
        for partition in topic.partitions:
            key = TopicPartition(topic.name, partition.partition_index)
            refused.pop(key, None)
            if partition.error_code is not ErrorCode.none:
                refused[key] = RefusedError(
                    partition.error_code, what=f"moving {key}", message=partition.error_message
                )
    return refused


def _ongoing(topics: Iterable[Any]) -> Iterable[OngoingReassignment]:
    for topic in topics:
        for partition in topic.partitions:
            yield OngoingReassignment(
                topic=topic.name,
                partition=partition.partition_index,
                replicas=tuple(partition.replicas),
                adding_replicas=tuple(partition.adding_replicas),
                removing_replicas=tuple(partition.removing_replicas),
            )


def _election_refusals(results: Iterable[Any]) -> dict[TopicPartition, RefusedError]:
    refused: dict[TopicPartition, RefusedError] = {}
    for result in results:
        for partition in result.partition_result:
            if partition.error_code not in _DONE_ALREADY:
                key = TopicPartition(result.topic, partition.partition_id)
                refused[key] = RefusedError(
                    partition.error_code,
                    what=f"electing a leader for {key}",
                    message=partition.error_message,
                )
    return refused


def _grouped(partitions: Iterable[TopicPartition]) -> Any:
    topics: dict[str, list[int]] = {}
    for key in sorted(partitions):
        topics.setdefault(key.topic, []).append(key.partition)
    return tuple({"topic": topic, "partitions": tuple(ids)} for topic, ids in topics.items())


def log_dir_of(broker: int, result: Any) -> LogDir:
    """One directory of an answer to DescribeLogDirs."""
    replicas = tuple(
        ReplicaLog(
            broker=broker,
            topic=topic.name,
            partition=partition.partition_index,
            size_bytes=partition.partition_size,
            offset_lag=partition.offset_lag,
            is_future=partition.is_future_key,
            log_dir=result.log_dir,
        )
        for topic in result.topics
        for partition in topic.partitions
    )
    total, usable = getattr(result, "total_bytes", -1), getattr(result, "usable_bytes", -1)
    return LogDir(
        broker=broker,
        path=result.log_dir,
        total_bytes=None if total < 0 else total,
        usable_bytes=None if usable < 0 else usable,
        replicas=replicas,
        is_cordoned=getattr(result, "is_cordoned", False),
        is_failed=result.error_code is not ErrorCode.none,
    )
