"""Searches on brokers of ours: how far they look, stop and go on; memory; from the terminal."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from control.kafka.errors import NoSuchPartitionError
from control.kafka.records.scan_progress import Scan
from control.messages.message_search import MessageSearch
from control.views.paths import parse_path
from control.views.tables.messages import summary
from tests.support.cluster import LocalCluster
from tests.support.command_line import CommandLine
from tests.support.patience import WAIT_S
from tests.support.settle import eventually

COUNT = 12_000
FIRST_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Topic ``orders`` of three partitions: one record a second, each hundredth has failed."""
    with LocalCluster(tmp_path_factory.mktemp("search"), brokers=1) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        # Its records are years old: the usual retention would delete them after half a minute.
        topic = NewTopic("orders", 3, 1, config={"retention.ms": "-1"})
        for created in admin.create_topics([topic]).values():
            created.result(WAIT_S)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 50})
        for number in range(COUNT):
            status = "failed" if number % 100 == 0 else "paid"
            producer.produce(
                "orders",
                f'{{"order": {number}, "status": "{status}"}}',
                key=f"k{number % 10}",
                partition=number % 3,
                timestamp=FIRST_MS + 1_000 * number,
                headers={"shop": str(number % 7)},
            )
        assert producer.flush(WAIT_S) == 0
        yield cluster.bootstrap


def search_of(query: str) -> MessageSearch:
    return MessageSearch.of_query("orders", parse_path(f"browse/orders?{query}").query)


FAILED = "$[?@ == 'failed']"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"since": "earliest", "q": "FAILED"}, range(0, COUNT, 100)),
        ({"since": "-20000", "regex": '"failed"'}, range(0, COUNT, 100)),
        ({"since": "earliest", "key": "k0", "q": "failed"}, range(0, COUNT, 100)),
        ({"since": "earliest", "header": "shop=3", "path": FAILED}, range(500, COUNT, 700)),
        (
            {"since": "-20000", "cel": "value.order > 11990 && partition == 1"},
            range(11_992, COUNT, 3),
        ),
        (
            {"since": "earliest", "partition": "0,2", "q": "failed"},
            [number for number in range(0, COUNT, 100) if number % 3 != 1],
        ),
        (
            {"since": f"{FIRST_MS + 2_000_000}", "until": f"{FIRST_MS + 2_500_000}", "q": "failed"},
            range(2_000, 2_500, 100),
        ),
        ({"since": "-20000", "until": f"{FIRST_MS + 150_000}", "path": FAILED}, [0, 100]),
    ],
)
async def test_filters_find_what_they_say(
    bootstrap: str, query: dict[str, str], expected: range | list[int]
) -> None:
    search = MessageSearch.of_query("orders", query)
    found = await search.read(bootstrap, now_ms=FIRST_MS, limit=20_000)
    assert not found.rest
    values = [json.loads(each.value or b"") for each in found.records]
    assert sorted(value["order"] for value in values) == list(expected)


@pytest.mark.parametrize("start", ["earliest", "-100"])
async def test_a_scan_stops_at_its_limit_says_how_far_it_looked_and_goes_on(
    bootstrap: str, start: str
) -> None:
    search = search_of(f"since={start}&limit=5000&cel=value.order+%3D%3D+6001")
    found = await search.read(bootstrap, now_ms=FIRST_MS, limit=100)
    words, _ = summary(found, is_search=True)
    assert not found.records
    assert found.progress.record_count == 5_000
    assert words.startswith("0 match; ")
    assert f"of {COUNT:,} offsets" in words
    assert "not scanned yet" in words
    seen = 0
    while found.rest:
        found = await search.go_on(bootstrap, found, now_ms=FIRST_MS, limit=100)
        seen += len(found.records)
    assert seen == 1
    progress = found.progress
    assert (progress.record_count, progress.offsets_done) == (COUNT, COUNT)
    assert (progress.partitions_done, progress.found_count) == (3, 1)
    assert summary(found, is_search=True)[0].endswith("3 of 3 partitions whole: all of them")


async def test_a_scan_that_is_stopped_keeps_what_it_found_and_goes_on(bootstrap: str) -> None:
    search = search_of("since=earliest&limit=1000000&cel=value.status+%3D%3D+%27failed%27")
    scan = Scan()
    reading = asyncio.create_task(
        search.read(bootstrap, now_ms=FIRST_MS, limit=1_000_000, scan=scan)
    )

    async def has_found() -> bool:
        return bool(scan.records)

    await eventually(has_found, wanted=True)
    stopped = time.monotonic()
    scan.stop()
    found = await reading
    assert time.monotonic() - stopped < 0.5
    assert found.was_stopped
    assert "stopped by hand" in summary(found, is_search=True)[0]
    rest = await search.go_on(bootstrap, found, now_ms=FIRST_MS, limit=1_000_000)
    assert len(found.records) + len(rest.records) == COUNT // 100


async def test_records_that_cannot_be_judged_are_told(bootstrap: str) -> None:
    search = search_of("since=earliest&limit=1000000&cel=value.customer+%3D%3D+3")
    found = await search.read(bootstrap, now_ms=FIRST_MS, limit=100)
    words, told = summary(found, is_search=True)
    assert "all of them" in words
    assert told == [
        f"{COUNT:,} records could not be judged and left out; the first: "
        "cel: there is no field 'customer'"
    ]


async def test_a_partition_that_is_not_there_is_named(bootstrap: str) -> None:
    with pytest.raises(NoSuchPartitionError, match="orders has no partition 3"):
        await search_of("partition=1-3").read(bootstrap, now_ms=0, limit=1)


def test_the_command_line_searches_alike(bootstrap: str, tmp_path: Path) -> None:
    line = CommandLine(bootstrap=bootstrap, bus=bootstrap, folder=tmp_path)
    base = ("tail", "orders", "--offset", "earliest", "-e", "--partition", "0,2")
    found = line.run(*base, "--cel", "value.status == 'failed'", "--format", "%o\n")
    assert len(found.splitlines()) == 80
    limited = line.run(*base, "--regex", "nowhere", "--scan-limit", "1000")
    assert "0 match; " in limited
    assert "--scan-limit 1000 ends it here, the rest is not scanned" in limited
    wrong = line.run(*base, "--json-path", "$.a[", status=2)
    assert "json path: '$.a[' at its end: unexpected end of query" in wrong
