"""Asks any broker about the whole cluster: metadata, brokers, reassignments."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from control.collector.image import BrokerInfo, ClusterImage, TopicConfigs
from control.collector.rights import Gap, Gaps
from control.collector.source import wall_ms
from control.kafka.acl import NO_BITS, bits_of_topics
from control.kafka.admin.reassignments import KafkaReassignments
from control.kafka.admin.registrations import METADATA_TOPIC
from control.kafka.connection import apis
from control.kafka.connection.wire import Api, KafkaWire
from control.kafka.errors import KafkaPortError, RefusedError, UnsupportedApiError
from control.kafka.ports import ConfigScope

ASK_TIMEOUT_S: Final = 3.0
"""Of one question to one broker, before another one is asked."""
BROKERS_ASKED_MAX: Final = 3
SLOW_S: Final = 0.5
TOPICS_PER_REQUEST: Final = 500
_MIN_ISR: Final = "min.insync.replicas"
_RETENTION: Final = "retention.ms"
_RETENTION_BYTES: Final = "retention.bytes"
_CLEANUP: Final = "cleanup.policy"


class ClusterOverview:
    """Questions that any broker answers; one that is slow is not asked again at once."""

    def __init__(self, wire: KafkaWire, image: ClusterImage, gaps: Gaps) -> None:
        self._wire = wire
        self._image = image
        self._gaps = gaps
        self._reassignments = KafkaReassignments(wire)
        self._slow: dict[int, float] = {}
        """Seconds that brokers took to answer, fading."""
        self._configured: set[str] = set()
        self._unreadable: set[str] = set()
        """Topics whose configs we may not read."""
        self.topic_bits = NO_BITS
        """Of operations that are allowed on every topic."""
        self.cluster_bits = NO_BITS

    async def read_metadata(self) -> None:
        """All topics, what we may do with them, and every registered broker.

        :raises KafkaPortError: no broker answers.
        """
        fields = {
            "topics": None,
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": True,
        }
        message = await self._ask(apis.METADATA, fields)
        self._wire.set_addresses({b.node_id: (b.host, b.port) for b in message.brokers})
        self._image.take_metadata(message, wall_ms())
        self.topic_bits = bits_of_topics(message.topics)
        await self._read_registered()
        self._gaps.judge(Gap.TOPICS, self._image.hidden_topics(), "hidden topics")

    async def read_movements(self) -> None:
        """Running reassignments and the active controller, where we may ask."""
        await self._read_reassignments()
        await self._read_controller()

    async def read_configs(self) -> None:
        """Those of every topic that make figures, where we may ask."""
        await self._read_configs(self._image.topics)

    async def read_new_configs(self) -> None:
        """Those of topics that appeared since, and of those that we might not ask before: what
        shows a topic often lets its configs be read as well."""
        new = set(self._image.topics) - self._configured
        await self._read_configs(new | self._unreadable)

    def has_new_topics(self) -> bool:
        """Whether topics appeared whose configs were not read yet."""
        return not self._configured.issuperset(self._image.topics)

    async def _read_configs(self, topics: Iterable[str]) -> None:
        names = sorted(topics)
        denied: list[str] = []
        for start in range(0, len(names), TOPICS_PER_REQUEST):
            fields = {"resources": _config_resources(names[start : start + TOPICS_PER_REQUEST])}
            message = await self._ask(apis.DESCRIBE_CONFIGS, fields)
            for result in message.results:
                if result.error_code is ErrorCode.none:
                    self._image.configs[result.resource_name] = _topic_configs(result.configs)
                elif result.error_code is ErrorCode.topic_authorization_failed:
                    denied.append(result.resource_name)
                    self._image.configs.pop(result.resource_name, None)
        there = set(self._image.topics)
        self._configured = (self._configured | set(names)) & there
        self._unreadable = (self._unreadable - set(names) | set(denied)) & there
        self._gaps.judge(Gap.TOPIC_CONFIGS, self._unreadable, "topics")

    async def read_rights(self) -> None:
        """Reads our rights on the cluster; those on topics come with their metadata."""
        try:
            cluster = await self._ask(
                apis.DESCRIBE_CLUSTER, {"include_cluster_authorized_operations": True}
            )
            self.cluster_bits = cluster.cluster_authorized_operations
        except UnsupportedApiError:
            self.cluster_bits = NO_BITS

    async def _read_registered(self) -> None:
        try:
            message = await self._ask(
                apis.DESCRIBE_CLUSTER, {"include_fenced_brokers": True, "endpoint_type": 1}
            )
        except UnsupportedApiError:
            return
        if message.error_code is ErrorCode.none and hasattr(message.brokers[0], "is_fenced"):
            self._image.take_registered(
                BrokerInfo(
                    id=b.broker_id, host=b.host, port=b.port, rack=b.rack, is_fenced=b.is_fenced
                )
                for b in message.brokers
            )

    async def _read_reassignments(self) -> None:
        try:
            self._image.take_reassignments(await self._reassignments.list_reassignments())
            self._gaps.close(Gap.REASSIGNMENTS)
        except RefusedError as error:
            if error.code is ErrorCode.cluster_authorization_failed:
                self._gaps.open(Gap.REASSIGNMENTS)
        except UnsupportedApiError:
            return

    async def _read_controller(self) -> None:
        topics = ({"topic_name": METADATA_TOPIC, "partitions": ({"partition_index": 0},)},)
        try:
            message = await self._ask(apis.DESCRIBE_QUORUM, {"topics": topics})
        except UnsupportedApiError:
            self._image.controller_id = self._image.metadata_controller_id
            return
        if message.error_code is ErrorCode.cluster_authorization_failed:
            self._gaps.open(Gap.CONTROLLER)
            self._image.controller_id = -1
            return
        self._gaps.close(Gap.CONTROLLER)
        for topic in message.topics:
            for partition in topic.partitions:
                if partition.error_code is ErrorCode.none:
                    self._image.controller_id = partition.leader_id

    async def _ask(self, api: Api, fields: Mapping[str, Any]) -> Any:
        """Ask brokers in turn, those that were slow lately at the end."""
        story: KafkaPortError | None = None
        for node_id in self._choices():
            begun_s = time.monotonic()
            try:
                async with asyncio.timeout(ASK_TIMEOUT_S):
                    answer = await self._wire.send(api, fields, node_id=node_id)
            except TimeoutError:
                continue
            except UnsupportedApiError:
                raise
            except KafkaPortError as error:
                story = error
                continue
            finally:
                self._took(node_id, time.monotonic() - begun_s)
            return answer.message
        return (await self._last_try(api, fields, story)).message

    def _took(self, node_id: int | None, seconds: float) -> None:
        """Remember how long a broker took; slowly forget it of the others."""
        if node_id is not None:
            self._slow = {broker: 0.95 * took for broker, took in self._slow.items()}
            self._slow[node_id] = seconds

    async def _last_try(
        self, api: Api, fields: Mapping[str, Any], story: KafkaPortError | None
    ) -> Any:
        """Asks any broker that answers, by the bootstrap addresses if need be."""
        try:
            return await self._wire.send(api, fields)
        except KafkaPortError as error:
            raise story or error from error

    def _choices(self) -> Sequence[int | None]:
        known = self._image.brokers.values()
        live = [b.id for b in known if b.has_address and not b.is_fenced]
        live.sort(key=lambda broker: (self._slow.get(broker, 0.0) > SLOW_S, broker))
        return live[:BROKERS_ASKED_MAX] or [None]


def _config_resources(names: Sequence[str]) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "resource_type": int(ConfigScope.TOPIC),
            "resource_name": name,
            "configuration_keys": (_MIN_ISR, _RETENTION, _RETENTION_BYTES, _CLEANUP),
        }
        for name in names
    )


def _topic_configs(configs: Sequence[Any]) -> TopicConfigs:
    values = {config.name: config.value for config in configs}
    min_isr, retention = values.get(_MIN_ISR), values.get(_RETENTION)
    kept_bytes = values.get(_RETENTION_BYTES)
    deletes = "delete" in (values.get(_CLEANUP) or "")
    return TopicConfigs(
        min_isr=None if min_isr is None else int(min_isr),
        retention_ms=int(retention) if deletes and retention is not None else None,
        retention_bytes=(max(-1, int(kept_bytes)) if deletes else -1) if kept_bytes else None,
    )
