"""Reassignments by page and by terminal, on five brokers of ours and of Apache Kafka.

One story, told by either face; what happened is read with Kafka's own client library and tools.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.contract.operations_site import Site, site_of
from tests.e2e.faces import Face, page_face, terminal_face
from tests.support.node_cluster import CLUSTER_ID
from tests.support.paced_producer import PacedProducer, check_kept
from tests.support.settle import wait_until
from tests.support.store_builder import StoreBuilder

pytestmark = [pytest.mark.soak, pytest.mark.e2e, pytest.mark.timeout(590)]

KINDS: Final = ["ours", pytest.param("kafka", marks=pytest.mark.kafka_oracle)]
FACES: Final[list[Any]] = [
    pytest.param(page_face, id="page", marks=pytest.mark.browser),
    pytest.param(terminal_face, id="terminal"),
]
MIB: Final = 1 << 20
PARTITIONS: Final = 9
Open = Callable[[Site, Path], AbstractContextManager[Face]]


@pytest.fixture(params=KINDS)
def growing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """Three brokers, and two that have not joined yet."""
    if request.param == "kafka":
        request.getfixturevalue("kafka_libs")
    with site_of(request.param, tmp_path, brokers=5, late=2) as site:
        yield site


@pytest.mark.parametrize("open_face", FACES)
def test_two_brokers_are_filled_under_load_and_one_is_emptied_at_the_second_attempt(
    growing: Site, open_face: Open, tmp_path: Path
) -> None:
    eyes, cluster = growing.eyes, growing.cluster
    placement = {n: (101 + n % 3, 101 + (n + 1) % 3) for n in range(PARTITIONS)}
    topic = growing.topic("orders", placement, partition_bytes=2 * MIB)
    for node in (104, 105):
        cluster.start_node(node)
    cluster.wait_ready()
    store = tmp_path / "store"
    StoreBuilder(store).write(store_rows(growing, topic))
    with (
        PacedProducer(cluster.bootstrap, topic, partitions=PARTITIONS, per_s=50) as producer,
        open_face(growing, store) as face,
    ):
        soon = {"topics": topic, "spread": "20s"}
        face.begin({**soon, "throttle": "4MiB", "reason": "two have joined"})
        face.wait_until_shown("✔ done")
        grown = eyes.replicas(topic)
        held = Counter(broker for replicas in grown.values() for broker in replicas)
        assert min(held[104], held[105]) >= 3, held
        growing.check_settled(topic, grown)

        empty = {**soon, "remove_brokers": "103"}
        face.begin({**empty, "throttle": "100KiB", "reason": "103 goes"})
        growing.cli.wait_until_moving(reason="103 goes")
        face.cancel()
        face.wait_until_shown("cancelled")
        check_taken_back(growing, topic, grown)

        face.begin({**empty, "throttle": "8MiB", "reason": "103 goes now"})
        face.wait_until_shown("✔ done")
        shrunk = eyes.replicas(topic)
        assert all(103 not in replicas for replicas in shrunk.values()), shrunk
        growing.check_settled(topic, shrunk)
    check_kept(cluster.bootstrap, topic, producer)
    outcomes = [(move["reason"], move["outcome"]) for move in growing.cli.moves()]
    assert outcomes == [
        ("103 goes now", "done"),
        ("103 goes", "cancelled"),
        ("two have joined", "done"),
    ]


def check_taken_back(site: Site, topic: str, before: Mapping[int, Sequence[int]]) -> None:
    """No data has moved and nothing is left; an order of replicas that was done already stays,
    and the first of them leads."""
    wanted = {number: set(replicas) for number, replicas in before.items()}

    def is_back() -> bool:
        found = site.eyes.replicas(topic)
        first = {number: replicas[0] for number, replicas in found.items()}
        is_home = {number: set(replicas) for number, replicas in found.items()} == wanted
        return is_home and site.eyes.leaders(topic) == first and site.eyes.is_in_sync(topic)

    def story() -> str:
        return f"{site.eyes.replicas(topic)} led by {site.eyes.leaders(topic)}"

    wait_until(is_back, f"{topic} is back", story=story)
    assert site.eyes.reassigning() == ""
    assert site.eyes.throttles(topic) == {}


def store_rows(site: Site, topic: str) -> dict[str, list[dict[str, Any]]]:
    """What the metrics job would have written before anything moved."""
    now_ms = time.time_ns() // 1_000_000
    shared = {"cluster": CLUSTER_ID, "read_ms": now_ms}
    leaders = site.eyes.leaders(topic)
    return {
        "brokers": [
            {**shared, "broker": broker, "is_fenced": False, "interval_ms": 120_000,
             "sampled_ms": now_ms}
            for broker in site.cluster.ids
        ],
        "partitions": [
            {**shared, "topic": topic, "partition": number, "leader": leaders[number],
             "replicas": list(replicas), "isr": list(replicas), "adding_replicas": [],
             "removing_replicas": [], "min_isr": 1}
            for number, replicas in site.eyes.replicas(topic).items()
        ],
    }  # fmt: skip
