"""A cluster as Kafka's own client library and tools see it, for those who check what we did."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource as Resource
from confluent_kafka.cimpl import KafkaError, KafkaException, NewTopic

from tests.support.kafka_oracle import ready_admin, run_tool
from tests.support.patience import patience_s

TOOL: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
TIMEOUT_S: Final = patience_s(30)


class KafkaEyes:
    """Asks the cluster anew each time."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin: AdminClient = ready_admin(**{"bootstrap.servers": bootstrap})

    def create(self, topic: str, placement: Mapping[int, Sequence[int]]) -> None:
        """A topic whose replicas lie where they are told to."""
        replicas = [list(placement[partition]) for partition in sorted(placement)]
        new = NewTopic(topic, len(replicas), replica_assignment=replicas)
        try:
            self._admin.create_topics([new])[topic].result(TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_CONTROLLER:
                raise
            # ZooKeeper's controller may have moved since this client was made.
            self._admin = ready_admin(**{"bootstrap.servers": self._bootstrap})
            self._admin.create_topics([new])[topic].result(TIMEOUT_S)

    def delete(self, topic: str) -> None:
        """It and its data."""
        self._admin.delete_topics([topic])[topic].result(TIMEOUT_S)

    def replicas(self, topic: str) -> dict[int, tuple[int, ...]]:
        """Replicas by partition, the preferred leader first."""
        return {n: tuple(found.replicas) for n, found in self._partitions(topic).items()}

    def leaders(self, topic: str) -> dict[int, int]:
        """Leader by partition."""
        return {n: found.leader for n, found in self._partitions(topic).items()}

    def is_in_sync(self, topic: str) -> bool:
        """Whether every replica of every partition is in the ISR."""
        found = self._partitions(topic).values()
        return all(set(partition.isrs) == set(partition.replicas) for partition in found)

    def brokers(self) -> set[int]:
        """Those that are alive."""
        return set(self._admin.list_topics(timeout=TIMEOUT_S).brokers)

    def on_broker(self, broker: int) -> set[str]:
        """Topics that have a replica there, internal ones as well."""
        topics = self._admin.list_topics(timeout=TIMEOUT_S).topics
        return {
            name
            for name, topic in topics.items()
            if any(broker in partition.replicas for partition in topic.partitions.values())
        }

    def held(self) -> Counter[int]:
        """How many replicas each broker has, of all topics."""
        topics = self._admin.list_topics(timeout=TIMEOUT_S).topics.values()
        partitions = (found for topic in topics for found in topic.partitions.values())
        return Counter(broker for partition in partitions for broker in partition.replicas)

    def throttles(self, topic: str) -> dict[str, str]:
        """Every replication throttle that DescribeConfigs shows, on the topic and any broker."""
        brokers = self._admin.list_topics(timeout=TIMEOUT_S).brokers
        asked = [Resource(Resource.Type.TOPIC, topic)]
        asked += [Resource(Resource.Type.BROKER, str(broker)) for broker in brokers]
        return {
            f"{resource.name} {name}": entry.value
            for resource in asked
            for name, entry in self._configs(resource).items()
            if "replication.throttled" in name and entry.value and not entry.is_default
        }

    def reassigning(self) -> str:
        """What Kafka's tool lists as under way; empty where nothing is."""
        done = run_tool(TOOL, "--bootstrap-server", self._bootstrap, "--list")
        assert done.returncode == 0, done.stderr
        return "" if "No partition reassignments found" in done.stdout else done.stdout

    def verify(self, plan: Path) -> str:
        """What Kafka's tool says of a plan's partitions; throttles stay as they are."""
        words = ("--reassignment-json-file", str(plan), "--verify", "--preserve-throttles")
        return run_tool(TOOL, "--bootstrap-server", self._bootstrap, *words).stdout

    def _configs(self, resource: Resource) -> dict[str, Any]:
        """Twice, the second time by another client: this library waits for a broker that it knew
        and that is gone."""
        try:
            return self._configs_now(resource)
        except (TimeoutError, KafkaException):
            self._admin = ready_admin(**{"bootstrap.servers": self._bootstrap})
            return self._configs_now(resource)

    def _configs_now(self, resource: Resource) -> dict[str, Any]:
        (answer,) = self._admin.describe_configs([resource]).values()
        return dict(answer.result(TIMEOUT_S))

    def _partitions(self, topic: str) -> dict[int, Any]:
        found = self._admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
        assert found.error is None, found.error
        return dict(found.partitions)
