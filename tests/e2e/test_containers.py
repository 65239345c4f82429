"""The compose files, run by podman: brokers, job, page and a reassignment."""

import json
import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.support.containers import Composed, ComposedKafka, ContainersUnavailableError, Podman
from tests.support.kafka_oracle import KAFKA_TODAY, OracleUnavailableError, kafka_libs
from tests.support.patience import WAIT_S, patience_s
from tests.support.ports import free_ports
from tests.support.settle import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(2_400)]

SERVICES: Final = (
    *("broker-101", "broker-102", "broker-103"),
    *("metrics", "executor", "dashboard", "demo"),
)
HEALTHY: Final = tuple(it for it in SERVICES if it not in ("executor", "demo"))
START_S: Final = patience_s(300)
Address = dict[str, str | int | float | bool]


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    """`TESTS_PODMAN` names a folder whose image is kept for the next run."""
    kept = os.environ.get("TESTS_PODMAN")
    folder = Path(kept or tempfile.mkdtemp(prefix="partiscope-podman-"))
    made = Podman(folder)
    try:
        made.__enter__()
    except ContainersUnavailableError as error:
        pytest.skip(str(error))
    yield made
    if kept is None:
        made.__exit__(None, None, None)


@pytest.fixture
def ports() -> dict[str, str]:
    names = ("PORT_101", "PORT_102", "PORT_103", "PAGE_PORT")
    return dict(zip(names, map(str, free_ports(len(names))), strict=True))


def figures_of(composed: Composed) -> bool:
    """Whether the job's figures have come to the page's container."""
    listed = ("partiscope", "partitions", "--topic", "orders", "--json")
    return '"partition"' in composed.exec("dashboard", *listed, check=False)


def has_executors(composed: Composed) -> bool:
    """Whether an application of Spark runs on each worker."""
    workers = ("spark-worker-1", "spark-worker-2")
    return all("app-" in composed.exec(it, "ls", "/tmp/work", check=False) for it in workers)


def batches_of(composed: Composed) -> int:
    """Batches of the metrics job that the screens have heard of."""
    told = composed.exec("metrics", "cat", "/data/store/manifest.json", check=False)
    return int(json.loads(told)["batch_id"]) if told else 0


def logs_in(url: str, password: str) -> bool:
    """Whether the page takes this password of its first user."""
    form = urlencode({"name": "admin", "password": password, "next": "/overview"}).encode()
    browser = build_opener(HTTPCookieProcessor())
    try:
        with browser.open(Request(f"{url}/login", form, {"Origin": url}), timeout=WAIT_S) as page:
            return str(page.url).endswith("/overview")
    except HTTPError:
        return False


def replicas_of(address: Address, topic: str) -> list[int]:
    """Of its first partition, as a client on the host sees it."""
    told = AdminClient(address).list_topics(topic, timeout=WAIT_S).topics[topic].partitions[0]
    return list(told.replicas)


def reassign(composed: Composed, edit: str) -> None:
    """Plan by hand and run it to its end, where the key lies."""
    plan = ("plan", "--edit", edit, "--out", "/tmp/plan.json")
    composed.exec("dashboard", "partiscope", *plan)
    composed.exec("dashboard", "partiscope", "reassign", "/tmp/plan.json", "--yes")


def test_the_bundled_cluster_serves_host_and_network_and_moves_partitions(
    podman: Podman, ports: dict[str, str]
) -> None:
    with Composed(podman, **ports) as composed:
        for service in HEALTHY:
            wait_until(
                partial(composed.is_healthy, service),
                f"{service} is healthy",
                timeout_s=START_S,
                story=composed.logs,
            )
        with urlopen(f"http://127.0.0.1:{ports['PAGE_PORT']}/health", timeout=WAIT_S) as answer:
            assert answer.read().strip() == b"ok"
        page = f"http://127.0.0.1:{ports['PAGE_PORT']}"
        password = composed.exec("dashboard", "cat", "/keys/admin-password").strip()
        assert (logs_in(page, password), logs_in(page, "wrong")) == (True, False)
        address: dict[str, str | int | float | bool] = {
            "bootstrap.servers": f"127.0.0.1:{ports['PORT_102']}"
        }
        told = AdminClient(address).list_topics(timeout=WAIT_S).brokers.values()
        assert {f"{it.host}:{it.port}" for it in told} == {
            f"127.0.0.1:{ports[f'PORT_{number}']}" for number in (101, 102, 103)
        }
        producer = Producer({**address, "acks": "all"})
        producer.produce("orders", key="host", value="from the host")
        assert producer.flush(WAIT_S) == 0
        inside = ("--bootstrap", "broker-103:9092")
        assert "orders" in composed.exec("executor", "partiscope", "topics", "list", *inside)
        made = ("topics", "create", "moved", "--partitions", "1", "--replication-factor", "1")
        composed.exec("dashboard", "partiscope", *made)
        (at,) = replicas_of(address, "moved")
        other = next(it for it in (101, 102, 103) if it != at)
        reassign(composed, f"moved-0: {other}")
        assert replicas_of(address, "moved") == [other]
        wait_until(lambda: figures_of(composed), "figures", timeout_s=START_S, story=composed.logs)
        for service in SERVICES:
            assert composed.exec(service, "id", "-u").strip() == "10001"
            assert composed.exec(service, "touch", "/x", check=False) == ""
            assert not composed.exec(service, "ls", "/x", check=False)
    check_gone(podman)


def test_a_spark_of_master_and_workers_makes_the_figures(
    podman: Podman, ports: dict[str, str]
) -> None:
    with Composed(podman, "spark", **ports) as composed:
        address: Address = {"bootstrap.servers": f"127.0.0.1:{ports['PORT_101']}"}
        wait_until(lambda: figures_of(composed), "figures", timeout_s=START_S, story=composed.logs)
        wait_until(
            lambda: has_executors(composed), "executors", timeout_s=START_S, story=composed.logs
        )
        # What each batch writes: an executor of either worker has folded its part.
        wait_until(
            lambda: batches_of(composed) > 2, "batches", timeout_s=START_S, story=composed.logs
        )
        made = ("topics", "create", "moved", "--partitions", "1", "--replication-factor", "1")
        composed.exec("dashboard", "partiscope", *made)
        (at,) = replicas_of(address, "moved")
        other = next(it for it in (101, 102, 103) if it != at)
        reassign(composed, f"moved-0: {other}")
        assert replicas_of(address, "moved") == [other]
    check_gone(podman)


@pytest.mark.kafka_oracle
def test_a_kafka_of_ones_own_is_watched_and_moved(
    podman: Podman, ports: dict[str, str], tmp_path: Path
) -> None:
    try:
        libs = kafka_libs(KAFKA_TODAY)
    except OracleUnavailableError as error:
        pytest.skip(str(error))
    topics = "org.apache.kafka.tools.TopicCommand"
    theirs = ("--create", "--topic", "theirs", "--replica-assignment", "1,1")
    told = ("--describe", "--topic", "theirs")
    listed = ("partiscope", "partitions", "--topic", "theirs", "--json")
    with ComposedKafka(podman, tmp_path, libs) as kafka:
        wait_until(lambda: "theirs" in kafka.tool(topics, *theirs), "Kafka", timeout_s=START_S)
        with Composed(podman, "watch", KAFKA=kafka.BOOTSTRAP, **ports) as composed:
            wait_until(
                lambda: '"partition"' in composed.exec("dashboard", *listed, check=False),
                "figures of the watched Kafka",
                timeout_s=START_S,
                story=composed.logs,
            )
            reassign(composed, "theirs-0: 2")
            assert "Replicas: 2\t" in kafka.tool(topics, *told)
            assert not composed.exec("demo", "true", check=False), "no load on one's own Kafka"
    check_gone(podman)


def check_gone(podman: Podman) -> None:
    """No container, volume or network of the compose files is left."""
    ours = ("--quiet", "--filter", "name=partiscope_")
    for words in (("ps", "--all"), ("volume", "ls"), ("network", "ls")):
        assert not podman.run(*words, *ours).stdout, words
