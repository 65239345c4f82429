"""What is so on the cluster of the tasks, by Kafka's own client: screens must tell the same."""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from tests.support.installation import Installation
from tests.support.patience import patience_s
from tests.support.tasks.cluster import OWN_GROUPS, STUCK_AT
from tests.support.tasks.prepared import BROKER, FACES, THROTTLED_TO, command_line

ASKED_S: Final = patience_s(10.0)
LAG: Final = 80
_LATEST: Final[Any] = OffsetSpec
STUCK_GROUPS: Final = ("billing", "hasty")
Facts = Mapping[str, str]


def facts_of(installation: Installation) -> Facts:
    """Of the cluster as it is before a task changes it."""
    admin = AdminClient({"bootstrap.servers": installation.bootstrap, "log_level": 0})
    topics = admin.list_topics(timeout=ASKED_S).topics
    parts = [part for topic in topics.values() for part in topic.partitions.values()]
    held = Counter(broker for part in parts for broker in part.replicas)
    asked = {TopicPartition("orders", number): _LATEST.latest()
             for number in topics["orders"].partitions}  # fmt: skip
    ends = {key.partition: it.result(ASKED_S).offset
            for key, it in admin.list_offsets(asked).items()}  # fmt: skip
    lags = {number: end - STUCK_AT for number, end in ends.items()}
    by_leader: Counter[int] = Counter()
    for number, part in topics["orders"].partitions.items():
        by_leader[part.leader] += lags[number]
    rows = held.total() + sum(map(len, _commits(admin)))
    disk = shutil.disk_usage(installation.data)
    used = 100 * (1 - disk.free / disk.total)
    return {
        "controller": str(admin.describe_cluster().result(ASKED_S).controller.id),
        "held_b": str(held[102]),
        "held_a": str(held[101] + held[104]),
        # The replica that a reassignment took away may be remembered.
        "state_rows": f"{rows}|{rows + 1}",
        "oldest": _oldest_key(installation.bootstrap),
        "lagging": str(sum(lag > LAG for lag in lags.values())),
        "lag_max": str(max(by_leader.values())),
        "stuck_groups": str(len(STUCK_GROUPS) + len(OWN_GROUPS) * len(FACES)),
        "disk": "|".join(f"{used + off:.0f} %" for off in (-1, 0, 1)),
    }


def _oldest_key(bootstrap: str) -> str:
    """Of the first partition: the newest messages of the topic lack it."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody",
                         "enable.auto.commit": False, "log_level": 0})  # fmt: skip
    consumer.assign([TopicPartition("orders", 0, 0)])
    record = consumer.poll(ASKED_S)
    consumer.close()
    assert record is not None
    return str((record.key() or b"").decode())


def _commits(admin: AdminClient) -> Iterator[Sequence[TopicPartition]]:
    for group in admin.list_consumer_groups().result(ASKED_S).valid:
        asked = ConsumerGroupTopicPartitions(group.group_id)
        yield (
            admin.list_consumer_group_offsets([asked])[group.group_id]
            .result(ASKED_S)
            .topic_partitions
        )


def facts_for(face: str, installation: Installation, facts: Facts, start: str) -> Facts:
    """Also the face's own things: its reassignment, where the task starts there."""
    own = {"face": face, "broker": str(BROKER[face]), "move": "",
           "rate": f"{THROTTLED_TO[face]}KiB"}  # fmt: skip
    if "{move}" in start:
        own["move"] = move_of(installation, face)
    return {**facts, **own}


def move_of(installation: Installation, face: str) -> str:
    """The newest reassignment of the face's own topics."""
    line = command_line(installation)
    for each in line.moves():
        if f"-{face}" in str(line.json("moves", "show", each["id"])):
            return str(each["id"])
    raise AssertionError(f"no move of {face}")
