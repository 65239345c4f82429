"""Which brokers a cluster counts as its own, those that are down as well."""

from typing import Final

from kio.schema.errors import ErrorCode

from control.kafka.connection import apis
from control.kafka.connection.wire import KafkaWire
from control.kafka.errors import KafkaPortError, UnsupportedApiError, raise_if_refused

METADATA_TOPIC: Final = "__cluster_metadata"


class KafkaRegistrations:
    """The brokers that one cluster knows."""

    def __init__(self, wire: KafkaWire) -> None:
        self._wire = wire

    async def registered_brokers(self) -> frozenset[int] | None:
        """Those that are down as well, by DescribeCluster; null before Kafka 4.0."""
        try:
            answer = await self._wire.send(
                apis.DESCRIBE_CLUSTER, {"include_fenced_brokers": True, "endpoint_type": 1}
            )
        except UnsupportedApiError:
            return None
        message = answer.message
        if message.error_code is not ErrorCode.none:
            return None
        tells = all(hasattr(broker, "is_fenced") for broker in message.brokers)
        return frozenset(broker.broker_id for broker in message.brokers) if tells else None

    async def controller_voters(self) -> frozenset[int]:
        """Nodes that vote in the controller quorum; empty where the cluster does not tell."""
        topics = ({"topic_name": METADATA_TOPIC, "partitions": ({"partition_index": 0},)},)
        try:
            answer = await self._wire.send(apis.DESCRIBE_QUORUM, {"topics": topics})
        except KafkaPortError:
            return frozenset()
        partitions = (
            partition for topic in answer.message.topics for partition in topic.partitions
        )
        return frozenset(
            voter.replica_id for partition in partitions for voter in partition.current_voters
        )

    async def unregister_broker(self, broker: int) -> bool:
        """Have the cluster forget a broker that does not run; whether it knew it.

        :raises RefusedError: we may not.
        """
        answer = await self._wire.send(apis.UNREGISTER_BROKER, {"broker_id": broker})
        if answer.message.error_code is ErrorCode.broker_id_not_registered:
            return False
        what, message = f"unregistering broker {broker}", answer.message.error_message
        raise_if_refused(answer.message.error_code, what=what, message=message)
        return True
