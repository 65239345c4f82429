"""Asks the cluster by Kafka's own client what became of a task that changes something."""

from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec

from tests.support.installation import Installation
from tests.support.settle import wait_until
from tests.support.tasks.facts import move_of
from tests.support.tasks.prepared import (
    BROKER,
    LED,
    MOVED_FROM,
    MOVED_TO,
    RATE,
    SLOW,
    SLOW_FROM,
    SLOW_TO,
    THROTTLED_TO,
    command_line,
)

ASKED_S: Final = 10.0
SEEN_S: Final = 20.0
DRAINED_S: Final = 180.0
DRAIN: Final = "Move all replicas off a broker, and cordon it"
PAUSE: Final = "Pause a running reassignment"
HELD: Final = ("pausing", "paused")
KIB: Final = 1024
SENT_BEFORE: Final = 100
"""Records of a small topic of the tasks' cluster."""
SPEC: Final[Any] = OffsetSpec
"""Its methods have no types."""
Proof = Callable[[AdminClient, str], object]
"""Of a face's own thing: true once the cluster has it so."""


def prove(installation: Installation, asks: str, face: str) -> None:
    """Until the cluster has it so; a task that only reads proves nothing here."""
    if asks == PAUSE:
        wait_until(lambda: _phase(installation, face) in HELD, "it is paused", timeout_s=SEEN_S)
    elif asks in PROOFS:
        admin = AdminClient({"bootstrap.servers": installation.bootstrap, "log_level": 0})
        wait_until(lambda: bool(PROOFS[asks](admin, face)), f"the cluster has it: {asks}",
                   timeout_s=DRAINED_S if asks == DRAIN else SEEN_S)  # fmt: skip


def _phase(installation: Installation, face: str) -> str:
    """A pause is no state of the cluster: the command line tells it."""
    return str(
        command_line(installation).json("moves", "show", move_of(installation, face))["phase"]
    )


def _topics(admin: AdminClient) -> dict[str, Any]:
    return dict(admin.list_topics(timeout=ASKED_S).topics)


def _config(admin: AdminClient, kind: Any, thing: str, name: str) -> Any:
    resource = ConfigResource(kind, thing)
    return admin.describe_configs([resource])[resource].result(ASKED_S)[name].value


def _retention(admin: AdminClient, face: str) -> Any:
    return _config(admin, ConfigResource.Type.TOPIC, f"cfg-{face}", "retention.ms")


def _cordoned(admin: AdminClient, face: str) -> Any:
    return _config(admin, ConfigResource.Type.BROKER, str(BROKER[face]), "cordoned.log.dirs")


def _throttle(admin: AdminClient, face: str) -> int:
    return int(_config(admin, ConfigResource.Type.BROKER, str(SLOW_TO[face]), RATE))


def _leader(admin: AdminClient, topic: str) -> int:
    return int(_topics(admin)[topic].partitions[0].leader)


def _holders(admin: AdminClient) -> set[int]:
    parts = (it for topic in _topics(admin).values() for it in topic.partitions.values())
    return {broker for part in parts for broker in part.replicas}


def _offsets(admin: AdminClient, topic: str, spec: Any) -> list[int]:
    asked = {TopicPartition(topic, number): spec for number in range(2)}
    return [int(it.result(ASKED_S).offset) for it in admin.list_offsets(asked).values()]


def _committed(admin: AdminClient, group: str) -> list[int]:
    asked = ConsumerGroupTopicPartitions(group)
    found = admin.list_consumer_group_offsets([asked])[group].result(ASKED_S)
    return [it.offset for it in sorted(found.topic_partitions, key=lambda it: it.partition)]


def _groups(admin: AdminClient) -> set[str]:
    return {it.group_id for it in admin.list_consumer_groups().result(ASKED_S).valid}


def _replicas(admin: AdminClient, topic: str) -> list[tuple[int, ...]]:
    """Of each partition; one that moves has those of before and after."""
    parts = _topics(admin)[topic].partitions
    return [tuple(parts[number].replicas) for number in sorted(parts)]


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
    "Keep new replicas off a broker (cordon)": lambda admin, face: _cordoned(admin, face) == "*",
    "Let a broker take replicas again (uncordon)": lambda admin, face: not _cordoned(admin, face),
    "Elect preferred leaders": lambda admin, face: _leader(admin, f"led-{face}") == LED[-1],
    "Move a partition": lambda admin, face: _replicas(admin, f"moved-{face}") == [MOVED_TO],
    "Roll a reassignment back": lambda admin, face: (
        _replicas(admin, f"moved-{face}") == [MOVED_FROM]
    ),
    "Throttle a running reassignment": lambda admin, face: (
        _throttle(admin, face) == THROTTLED_TO[face] * KIB
    ),
    "Cancel a running reassignment": lambda admin, face: (
        _replicas(admin, f"{SLOW}-{face}") == [(SLOW_FROM,)] * 2
    ),
    DRAIN: lambda admin, face: BROKER[face] not in _holders(admin),
}
