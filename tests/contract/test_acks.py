"""What acks 0, 1 and all promise, and what each loses when the leader dies before its followers."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.cluster import LocalCluster
from tests.support.ledger import log_end
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until
from tests.support.wire import wait_everywhere

pytestmark = pytest.mark.thorough

LEADER: Final = 101
FOLLOWERS: Final = (102, 103)
RECORDS: Final = 20
ACKS: Final = ("0", "1", "all")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """For each kind of acks a topic of one partition, led by 101, in sync on all three."""
    with LocalCluster(tmp_path) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap, "log_level": 0})
        replicas = [[LEADER, *FOLLOWERS]]
        config = {"min.insync.replicas": "2"}
        new = [NewTopic(f"acks-{a}", 1, replica_assignment=replicas, config=config) for a in ACKS]
        for created in admin.create_topics(new).values():
            created.result(WAIT_S)
        for acks in ACKS:
            wait_everywhere(
                running.bootstrap,
                f"acks-{acks}",
                lambda topic: topic is not None and topic.partitions[0].leader_id == LEADER,
                "is led by 101",
            )
        yield running


class Sender:
    """A producer that never sends anything twice unless acks=all makes it sure to be right."""

    def __init__(self, bootstrap: str, acks: str) -> None:
        self.topic = f"acks-{acks}"
        self.promised: set[str] = set()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": acks,
                "enable.idempotence": acks == "all",
                "linger.ms": 0,
                "log_level": 0,
            }
        )

    def send(self, *values: str) -> None:
        """Hand the values over; `promised` grows as they are acknowledged."""
        for value in values:
            self._producer.produce(self.topic, value, on_delivery=self._deliver(value))

    def wait_promised(self, *values: str) -> None:
        """Until all of these are acknowledged."""
        wait_until(lambda: self.have_promised(*values), f"{self.topic}: {len(values)} promised")

    def have_promised(self, *values: str) -> bool:
        """Whether all of these are acknowledged by now."""
        self._producer.poll(0)
        return self.promised.issuperset(values)

    def _deliver(self, value: str) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, (value, error)
            self.promised.add(value)

        return delivered


def test_acks_side_by_side_when_the_leader_dies(cluster: LocalCluster) -> None:
    senders = {acks: Sender(cluster.bootstrap, acks) for acks in ACKS}
    for sender in senders.values():
        sender.send("before")
        sender.wait_promised("before")
    values = [f"record {n}" for n in range(RECORDS)]
    _signal(cluster, signal.SIGSTOP)
    # The fetch that each follower had sent before it stood still is answered by these.
    for acks in ("0", "1"):
        _append(cluster, senders[acks], "last copied")
        senders[acks].send(*values)
        senders[acks].wait_promised(*values)
    senders["all"].send(*values)
    assert not senders["all"].have_promised(values[0]), "nobody else has it yet"
    cluster.kill(LEADER)
    _signal(cluster, signal.SIGCONT)
    for sender in senders.values():
        sender.send("after")
    senders["all"].wait_promised(*values, "after")
    for acks in ("0", "1"):
        senders[acks].wait_promised("after")
    lost = {acks: _lost(cluster, senders[acks]) for acks in ACKS}
    assert lost["all"] == set(), "what acks=all promised is kept"
    assert lost["1"] >= set(values), "only the dead leader had it"
    assert lost["0"] >= set(values), "nobody ever said that it had it"
    print({acks: f"{len(lost[acks])} of {len(senders[acks].promised)} lost" for acks in ACKS})


def _append(cluster: LocalCluster, sender: Sender, value: str) -> None:
    """Send it, and wait until the leader has it: with acks=0 nobody says so."""
    log = cluster.log_dir(LEADER) / f"{sender.topic}-0" / f"{0:020d}.log"
    held = log.stat().st_size
    sender.send(value)
    sender.wait_promised(value)
    wait_until(lambda: log.stat().st_size > held, f"the leader has {value!r} of {sender.topic}")


def _signal(cluster: LocalCluster, number: signal.Signals) -> None:
    for node_id in FOLLOWERS:
        cluster.processes[node_id].send_signal(number)


def _lost(cluster: LocalCluster, sender: Sender) -> set[str]:
    """What was promised and is not there; acks=0 may lose even what was sent after the kill."""
    found: set[str] = set()
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "audit"})
    partition = TopicPartition(sender.topic, 0, 0)
    end = log_end(consumer, partition)
    consumer.assign([partition])

    def is_read() -> bool:
        for message in consumer.consume(100, timeout=0.1):
            assert message.error() is None
            found.add((message.value() or b"").decode())
        return consumer.position([partition])[0].offset >= end

    wait_until(is_read, f"{sender.topic} is read to {end}")
    consumer.close()
    return sender.promised - found
