"""A page that follows 50,000 records a second samples them, and stays usable."""

from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.cimpl import NewTopic
from playwright.sync_api import expect

from tests.support.browser import chromium, open_page
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import ready_admin
from tests.support.node_cluster import CLUSTER_ID
from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S, patience_s
from tests.support.steady_load import SteadyLoad
from tests.support.store_builder import StoreBuilder

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(240)]

PER_S: Final = 50_000
REACHED_MIN: Final = 0.8
PARTITIONS: Final = 4
ANSWER_MS_MAX: Final = 1_000 * patience_s(0.1)
ASKED: Final = 40
ANSWERS: Final = """async (count) => {
    const times = [];
    for (let i = 0; i < count; i += 1) {
        const url = `/topics?asked=${i}`;
        await (await fetch(url)).text();
        const [entry] = performance.getEntriesByName(location.origin + url);
        times.push(entry.responseStart - entry.requestStart);
        await new Promise((go_on) => setTimeout(go_on, 100));
    }
    return times;
}"""
"""Milliseconds in which the server answers, as the browser measures them."""


def test_a_page_that_follows_fifty_thousand_a_second_stays_usable(tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "cluster", brokers=3) as cluster:
        admin = ready_admin(**{"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("fast", PARTITIONS, 1)])["fast"].result(WAIT_S)
        rows = [
            {"cluster": CLUSTER_ID, "read_ms": 1, "leader": 1, "replicas": [1], "isr": [1],
             "min_isr": 1, "topic": "fast", "partition": number}
            for number in range(PARTITIONS)
        ]  # fmt: skip
        StoreBuilder(tmp_path / "store").write({"partitions": rows})
        where = ("--bootstrap", cluster.bootstrap, "--bus", cluster.bootstrap)
        load = SteadyLoad(cluster.bootstrap, "fast", per_s=PER_S, partitions=PARTITIONS)
        errors: list[str] = []
        with PageServer(tmp_path / "store", *where) as server, chromium() as browser:
            page = open_page(browser, f"{server.url}/browse/fast?follow=yes", errors)
            result = page.locator("#browse-result")
            expect(result).to_contain_text("Following")
            with load.running():
                expect(result).to_contain_text("too fast to show all: 1 of ")
                times = sorted(page.evaluate(ANSWERS, ASKED))
                page.get_by_label("Contains").fill("7777")
                shown = result.locator(".message-value")
                expect(shown.first).to_contain_text("7777")
                page.locator("#browse-follow").click()
                expect(page.locator("#browse-follow")).to_have_text("Follow")
        usual, late = times[len(times) // 2], times[-max(len(times) // 10, 1)]
        print(f"{load.reached_per_s:,.0f} records/s; answers: {usual:.0f} ms, 90 % {late:.0f} ms")
        assert load.reached_per_s >= REACHED_MIN * PER_S
        assert usual < ANSWER_MS_MAX
        assert errors == []
