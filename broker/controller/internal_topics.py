"""Topics that the brokers make for themselves on first use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from broker.config.broker_config import BrokerConfig
from broker.metadata.topic_names import OFFSETS_TOPIC, TRANSACTION_TOPIC
from broker.protocol import codec

CREATE_TOPICS: Final = 19
CREATE_TOPICS_VERSION: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """How an internal topic is made; the factor is lowered to the brokers there are."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


def internal_topics(config: BrokerConfig) -> dict[str, InternalTopic]:
    """All internal topics by name."""
    offsets = InternalTopic(
        name=OFFSETS_TOPIC,
        partitions=config.offsets_topic_num_partitions,
        replication_factor=config.offsets_topic_replication_factor,
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        },
    )
    transactions = InternalTopic(
        name=TRANSACTION_TOPIC,
        partitions=config.transaction_topic_num_partitions,
        replication_factor=config.transaction_topic_replication_factor,
        configs={
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.transaction_topic_min_isr),
            "segment.bytes": str(config.transaction_topic_segment_bytes),
            "unclean.leader.election.enable": "false",
        },
    )
    return {OFFSETS_TOPIC: offsets, TRANSACTION_TOPIC: transactions}


def build_creation(topic: InternalTopic, *, active_brokers: int, timeout_ms: int) -> Any:
    """The CreateTopics request."""
    return codec.build_request(
        CREATE_TOPICS,
        CREATE_TOPICS_VERSION,
        topics=[
            {
                "name": topic.name,
                "num_partitions": topic.partitions,
                "replication_factor": max(1, min(topic.replication_factor, active_brokers)),
                "configs": [{"name": k, "value": v} for k, v in topic.configs.items()],
            }
        ],
        timeout=timeout_ms,
    )
