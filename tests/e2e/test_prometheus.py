"""A real Prometheus scrapes the page of ``up`` and an exporter beside it, and finds the truth."""

import os
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.installation import Installation
from tests.support.patience import WAIT_S
from tests.support.ports import free_ports
from tests.support.prometheus import Prometheus
from tests.support.scraped import Scraped
from tests.support.settle import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(900)]

TOPIC: Final = "scraped"
GROUP: Final = 'a "group"\\ of \x1b others'
"""As no exporter should be surprised by."""
SEEN: Final = 'a "group"\\ of \\x1b others'
RECORDS: Final = 500
COMMITTED: Final = 120


@pytest.fixture(scope="module")
def exporter(up: Installation) -> Iterator[str]:
    """``partiscope exporter`` of the same installation, as ``host:port``."""
    (port,) = free_ports(1)
    command = (sys.executable, "-m", "partiscope", "exporter", "--data", str(up.data))
    process = subprocess.Popen(
        [*command, "--port", str(port)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    with process.stdout as said:
        assert f"ready http://127.0.0.1:{port}/metrics" in said.readline()
        yield f"127.0.0.1:{port}"
        process.terminate()
        assert process.wait(WAIT_S) == 0


@pytest.fixture(scope="module")
def prometheus(
    up: Installation, exporter: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """Scrapes the page as job-0, the exporter as job-1."""
    folder = tmp_path_factory.mktemp("prometheus") / "p"
    with Prometheus(folder, [up.page.removeprefix("http://"), exporter]) as prometheus:
        yield prometheus


@pytest.fixture(scope="module")
def committed(up: Installation) -> None:
    """A topic, and a group that has read a part of it."""
    _produce_and_commit(up.bootstrap)


@pytest.mark.usefixtures("committed")
def test_page_and_exporter_tell_offsets_and_lag_as_they_are(
    up: Installation, exporter: str
) -> None:
    for address in (up.page.removeprefix("http://"), exporter):

        def lag(address: str = address) -> list[float]:
            return Scraped.from_server(address).all("kafka_consumergroup_lag_sum", topic=TOPIC)

        wait_until(lambda: bool(lag()), "the lag is told", story=up.story)
        told = Scraped.from_server(address)
        assert lag() == [RECORDS - COMMITTED]
        assert told.value("kafka_topic_partition_current_offset", topic=TOPIC) == RECORDS
        assert told.value("kafka_topic_partition_replicas", topic=TOPIC) == 3
        assert told.value("kafka_consumergroup_current_offset", topic=TOPIC) == COMMITTED
        assert told.value("kafka_brokers") == up.brokers
        assert told.value("partiscope_figures_stale") == 0
        assert SEEN in told.values_of("kafka_consumergroup_lag_sum", "consumergroup")


@pytest.mark.soak  # Prometheus itself takes minutes to build
@pytest.mark.usefixtures("committed")
def test_prometheus_finds_offsets_and_lag_as_they_are(
    up: Installation, prometheus: Prometheus
) -> None:
    lag = f'kafka_consumergroup_lag_sum{{topic="{TOPIC}"}}'
    wait_until(lambda: len(prometheus.query(lag)) == 2, "both tell the lag", story=up.story)

    for job in ("job-0", "job-1"):
        of_topic = f'{{topic="{TOPIC}",job="{job}"}}'
        assert prometheus.value(f"kafka_topic_partition_current_offset{of_topic}") == RECORDS
        assert prometheus.value(f"kafka_topic_partition_replicas{of_topic}") == 3
        assert prometheus.value(f"kafka_consumergroup_current_offset{of_topic}") == COMMITTED
        assert prometheus.value(f"kafka_consumergroup_lag_sum{of_topic}") == RECORDS - COMMITTED
        assert prometheus.value(f'kafka_brokers{{job="{job}"}}') == up.brokers
        assert prometheus.value(f'partiscope_figures_stale{{job="{job}"}}') == 0
    assert {labels["consumergroup"] for labels, _ in prometheus.query(lag)} == {SEEN}
    assert prometheus.errors() == []


@pytest.mark.soak
def test_every_type_is_known_to_prometheus(prometheus: Prometheus) -> None:
    """The scraper negotiates OpenMetrics, and takes every line of it."""
    assert prometheus.query("up") == [(labels, 1.0) for labels, _ in prometheus.query("up")]
    assert (prometheus.value('scrape_samples_scraped{job="job-1"}') or 0) > 100
    rate = "rate(partiscope_job_bad_records_total[1m])"
    wait_until(lambda: len(prometheus.query(rate)) == 2, "two samples of a counter")
    assert len(prometheus.query("partiscope_build_info")) == 2
    assert len(prometheus.query("partiscope_topic_partition_isr_shrinks_total")) > 2


def _produce_and_commit(bootstrap: str) -> None:
    """One partition with so many records, of which a group without members has read some."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(WAIT_S)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0})
    for number in range(RECORDS):
        producer.produce(TOPIC, value=f"record {number}", partition=0)
    assert producer.flush(WAIT_S) == 0
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "log_level": 0})
    reader.commit(offsets=[TopicPartition(TOPIC, 0, COMMITTED)], asynchronous=False)
    reader.close()


@pytest.mark.parametrize(
    ("host", "path", "status"),
    [
        ("localhost:1", "/metrics", 200),
        ("127.0.0.1", "/health", 200),
        ("evil.example", "/metrics", 403),
        ("127.0.0.1", "/topics", 404),
    ],
)
def test_the_exporter_answers_its_own_names_and_has_no_views(
    exporter: str, host: str, path: str, status: int
) -> None:
    connection = HTTPConnection(exporter, timeout=WAIT_S)
    connection.request("GET", path, headers={"Host": host})

    assert connection.getresponse().status == status
    connection.close()
