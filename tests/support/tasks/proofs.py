"""Asks the cluster by Kafka's own client what became of a task that changes something."""

from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec

from tests.support.settle import wait_until
from tests.support.tasks.cluster import MOVED_FROM, MOVED_TO

ASKED_S: Final = 10.0
SEEN_S: Final = 20.0
SENT_BEFORE: Final = 100
"""Records of a small topic of the tasks' cluster."""
SPEC: Final[Any] = OffsetSpec
"""Its methods have no types."""
Proof = Callable[[AdminClient, str], object]
"""Of a face's own thing: true once the cluster has it so."""


def prove(bootstrap: str, asks: str, face: str) -> None:
    """Until the cluster has it so; a task that only reads proves nothing here."""
    if asks in PROOFS:
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        wait_until(lambda: bool(PROOFS[asks](admin, face)), f"the cluster has it: {asks}",
                   timeout_s=SEEN_S)  # fmt: skip


def _topics(admin: AdminClient) -> dict[str, Any]:
    return dict(admin.list_topics(timeout=ASKED_S).topics)


def _config(admin: AdminClient, kind: Any, thing: str, name: str) -> Any:
    resource = ConfigResource(kind, thing)
    return admin.describe_configs([resource])[resource].result(ASKED_S)[name].value


def _retention(admin: AdminClient, face: str) -> Any:
    return _config(admin, ConfigResource.Type.TOPIC, f"cfg-{face}", "retention.ms")


def _cordoned(admin: AdminClient) -> Any:
    return _config(admin, ConfigResource.Type.BROKER, "104", "cordoned.log.dirs")


def _offsets(admin: AdminClient, topic: str, spec: Any) -> list[int]:
    asked = {TopicPartition(topic, number): spec for number in range(2)}
    return [int(it.result(ASKED_S).offset) for it in admin.list_offsets(asked).values()]


def _committed(admin: AdminClient, group: str) -> list[int]:
    asked = ConsumerGroupTopicPartitions(group)
    found = admin.list_consumer_group_offsets([asked])[group].result(ASKED_S)
    return [it.offset for it in sorted(found.topic_partitions, key=lambda it: it.partition)]


def _groups(admin: AdminClient) -> set[str]:
    return {it.group_id for it in admin.list_consumer_groups().result(ASKED_S).valid}


def _replicas(admin: AdminClient, face: str) -> tuple[int, ...]:
    return tuple(_topics(admin)[f"moved-{face}"].partitions[0].replicas)


def _is_purged(admin: AdminClient, face: str) -> bool:
    topic = f"purge-{face}"
    return _offsets(admin, topic, SPEC.earliest()) == _offsets(admin, topic, SPEC.latest())


def _is_sent(admin: AdminClient, face: str) -> bool:
    topic = f"bulk-{face}"
    return sum(_offsets(admin, topic, SPEC.latest())) == SENT_BEFORE + 1


PROOFS: Final[dict[str, Proof]] = {
    "Create a topic": lambda admin, face: f"new-{face}" in _topics(admin),
    "Create a topic like another one": lambda admin, face: (
        _config(admin, ConfigResource.Type.TOPIC, f"like-{face}", "retention.ms") == "172800000"
    ),
    "Change a topic's retention": lambda admin, face: _retention(admin, face) == "7200000",
    "Set a config back to its default": lambda admin, face: _retention(admin, face) == "604800000",
    "Add partitions": lambda admin, face: len(_topics(admin)[f"grow-{face}"].partitions) == 4,
    "Delete all records of a topic": _is_purged,
    "Delete a topic": lambda admin, face: f"old-{face}" not in _topics(admin),
    "Send a message with a key": _is_sent,
    "Reset a group to a time": lambda admin, face: _committed(admin, f"late-{face}") == [0, 0],
    "Skip what a group has not read": lambda admin, face: (
        _committed(admin, f"reader-{face}") == _offsets(admin, f"sent-{face}", SPEC.latest())
    ),
    "Delete a group": lambda admin, face: f"gone-{face}" not in _groups(admin),
    "Keep new replicas off a broker (cordon)": lambda admin, _: _cordoned(admin) == "*",
    "Let a broker take replicas again (uncordon)": lambda admin, _: not _cordoned(admin),
    "Move a partition": lambda admin, face: _replicas(admin, face) == MOVED_TO,
    "Roll a reassignment back": lambda admin, face: _replicas(admin, face) == MOVED_FROM,
}
