"""Effective configs of topics and of this node, as of the latest image."""

from collections.abc import Mapping

from broker.config.broker_config import BrokerConfig
from broker.metadata.effective_configs import effective_broker_config, effective_topic_config
from broker.metadata.metadata_service import MetadataService


class NodeConfigs:
    """Gives broker.replication its configs (ConfigPort)."""

    def __init__(self, config: BrokerConfig, metadata: MetadataService) -> None:
        self._config = config
        self._metadata = metadata

    def topic(self, topic: str) -> Mapping[str, str]:
        """A topic's configs by their topic-level names, with all defaults."""
        return effective_topic_config(self._metadata.image, self._config, topic)

    def broker(self) -> Mapping[str, str]:
        """This node's configs, dynamic ones over those of its file."""
        return effective_broker_config(self._metadata.image, self._config)
