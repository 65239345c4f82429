"""`plan --goal traffic` by the command line, on ours and on Kafka, while a producer writes: what
arrives is evened, as the cluster itself shows when it is measured again. The clusters are the
test's own: beside others' topics the numbers of replicas would decide."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from partiscope.cli.app import run
from tests.contract.test_plan_files import PARTITIONS, crowded_topic, execute
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import KafkaCluster
from tests.support.patience import WAIT_S

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

RECORD: Final = b"x" * 4_000
PAUSE_S: Final = 0.02


@pytest.fixture(params=["ours", pytest.param("kafka", marks=pytest.mark.kafka_oracle)])
def bootstrap(request: pytest.FixtureRequest, kafka_libs: Path, tmp_path: Path) -> Iterator[str]:
    """An empty cluster."""
    assert kafka_libs.exists()  # the tool that executes is Kafka's
    cluster = LocalCluster if request.param == "ours" else KafkaCluster
    with cluster(tmp_path / "cluster") as running:
        yield running.bootstrap


@contextmanager
def producing(bootstrap: str, topic: str) -> Iterator[None]:
    """Steady load on every partition: some 200 kB/s each where the machine is free."""
    ended = threading.Event()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})

    def produce() -> None:
        while not ended.wait(PAUSE_S):
            for partition in range(PARTITIONS):
                producer.produce(topic, RECORD, partition=partition)
            producer.poll(0)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        producer.flush(WAIT_S)


def planned(
    bootstrap: str, topic: str, capsys: pytest.CaptureFixture[str], *more: str
) -> dict[str, Any]:
    """The plan as JSON."""
    capsys.readouterr()
    scope = ("--bootstrap", bootstrap, "--topics", topic, "--goal", "traffic")
    assert run(["plan", *scope, *more, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def arriving(document: dict[str, Any], topic: str) -> Counter[int]:
    """Bytes per second that producers send to the topic, by the broker that stores them."""
    load: Counter[int] = Counter()
    for partition in document["partitions"]:
        if partition["topic"] == topic:
            for broker in partition["replicas"]:
                load[broker] += partition.get("bytes_in", 0)
    return load


def test_traffic_is_evened_under_load(
    bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = crowded_topic(bootstrap)
    file = tmp_path / "plan.json"
    with producing(bootstrap, topic):
        made = planned(bootstrap, topic, capsys, "--out", str(file))
        now, after = (
            arriving(made["before"], topic),
            arriving(made["alternatives"][0]["after"], topic),
        )
        assert now[101] == now[102] > 0 == now[103]
        assert after[103] > 0
        assert max(after.values()) < max(now.values())
        assert made["alternatives"][0]["violations"] == []
        execute(bootstrap, file)
        again = arriving(planned(bootstrap, topic, capsys)["before"], topic)
    assert again[103] > 0
    assert max(again.values()) < 0.5 * sum(again.values())
