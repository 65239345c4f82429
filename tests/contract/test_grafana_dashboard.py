"""A real Prometheus answers every query of the Grafana dashboard, from a scrape of the exporter."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.patience import WAIT_S
from tests.support.ports import free_ports
from tests.support.prometheus import Prometheus
from tests.support.settle import wait_until
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]  # it takes minutes to build

DASHBOARD: Final = Path(__file__).resolve().parents[2] / "examples" / "grafana" / "partiscope.json"
VARIABLES: Final = {"$cluster": ".*", "$group": ".*", "$topic": ".*", "$job": "job-0"}
SIZES: Final = SyntheticSizes(topics=5, partitions=6, groups=6, offline_every=20)
MAY_BE_EMPTY: Final = (
    "partiscope_reassignment_copied_bytes",
    "partiscope_broker_disk_full_seconds",
    "partiscope_consumergroup_data_loss_seconds",
    "partiscope_log_dir_free_bytes",
    "sum(rate(partiscope_topic_partition_isr_shrinks_total",
)
"""Nothing moves, fills up or shrinks in the store of this test."""


@pytest.fixture
def store(tmp_path: Path) -> StoreBuilder:
    """A store with figures of everything."""
    return _renewed(StoreBuilder(tmp_path / "store"))


def _renewed(store: StoreBuilder) -> StoreBuilder:
    """The same store with figures of now."""
    rows = synthetic_rows(SIZES, at_ms=time.time_ns() // 1_000_000)
    for row in (*rows["commits"], *rows["groups"]):
        row["time_lag_ms"] = 2_000
    store.write(rows)
    return store


@pytest.fixture
def prometheus(tmp_path: Path, store: StoreBuilder) -> Iterator[Prometheus]:
    """Scrapes an exporter of this store."""
    (port,) = free_ports(1)
    words = ("exporter", "--store", str(store.folder), "--port", str(port))
    with subprocess.Popen(
        (sys.executable, "-m", "partiscope", *words), cwd=tmp_path, stdout=subprocess.PIPE
    ) as exporter:
        assert exporter.stdout is not None
        assert b"ready" in exporter.stdout.readline()
        try:
            with Prometheus(tmp_path / "prometheus", [f"127.0.0.1:{port}"]) as made:
                yield made
        finally:
            exporter.terminate()
            exporter.wait(WAIT_S)


def _queries(node: Any) -> Iterator[str]:
    """Those of panels."""
    if isinstance(node, list):
        for each in node:
            yield from _queries(each)
    elif isinstance(node, dict):
        yield from [node["expr"]] if isinstance(node.get("expr"), str) else []
        yield from _queries([*node.values()])


def test_every_query_is_answered(prometheus: Prometheus, store: StoreBuilder) -> None:
    queries = [*_queries(json.loads(DASHBOARD.read_text())["panels"])]
    assert len(queries) > 20
    for name, value in VARIABLES.items():
        queries = [it.replace(name, value) for it in queries]
    assert not [it for it in queries if "$" in it]

    def empty() -> list[str]:
        _renewed(store)
        found = [it for it in queries if not prometheus.query(it)]
        return [it for it in found if not it.startswith(MAY_BE_EMPTY)]

    wait_until(lambda: not empty(), "each has a value", story=lambda: "\n".join(empty()))
    assert prometheus.errors() == []
