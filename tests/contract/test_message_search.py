"""Searches on brokers of ours: how far they look, stop and go on; memory; from the terminal."""

import asyncio
import json
import time
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
from tests.contract.operations_rig import unique
from tests.support.cluster import LocalCluster
from tests.support.command_line import CommandLine
from tests.support.patience import WAIT_S, patience_s
from tests.support.phrases import lacking
from tests.support.settle import eventually

COUNT = 12_000
FIRST_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def topic(our_cluster: LocalCluster) -> str:
    """Three partitions: one record a second, each hundredth has failed."""
    name = unique("orders")
    admin = AdminClient({"bootstrap.servers": our_cluster.bootstrap})
    # Its records are years old: the usual retention would delete them after half a minute.
    new = NewTopic(name, 3, 1, config={"retention.ms": "-1"})
    for created in admin.create_topics([new]).values():
        created.result(WAIT_S)
    producer = Producer({"bootstrap.servers": our_cluster.bootstrap, "linger.ms": 50})
    for number in range(COUNT):
        status = "failed" if number % 100 == 0 else "paid"
        producer.produce(
            name,
            f'{{"order": {number}, "status": "{status}"}}',
            key=f"k{number % 10}",
            partition=number % 3,
            timestamp=FIRST_MS + 1_000 * number,
            headers={"shop": str(number % 7)},
        )
    assert producer.flush(WAIT_S) == 0
    return name


@pytest.fixture
def bootstrap(our_cluster: LocalCluster) -> str:
    return our_cluster.bootstrap


def search_of(topic: str, query: str) -> MessageSearch:
    return MessageSearch.of_query(topic, parse_path(f"browse/{topic}?{query}").query)


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
    bootstrap: str, topic: str, query: dict[str, str], expected: range | list[int]
) -> None:
    search = MessageSearch.of_query(topic, query)
    found = await search.read(bootstrap, now_ms=FIRST_MS, limit=20_000)
    assert not found.rest
    values = [json.loads(each.value or b"") for each in found.records]
    assert sorted(value["order"] for value in values) == list(expected)


@pytest.mark.parametrize("start", ["earliest", "-100"])
async def test_a_scan_stops_at_its_limit_says_how_far_it_looked_and_goes_on(
    bootstrap: str, topic: str, start: str
) -> None:
    search = search_of(topic, f"since={start}&limit=5000&cel=value.order+%3D%3D+6001")
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
    assert summary(found, is_search=True)[0].endswith("whole: all of them")


async def test_a_scan_that_is_stopped_keeps_what_it_found_and_goes_on(
    bootstrap: str, topic: str
) -> None:
    search = search_of(topic, "since=earliest&limit=1000000&cel=value.status+%3D%3D+%27failed%27")
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
    assert time.monotonic() - stopped < patience_s(5)
    assert found.was_stopped
    assert "stopped by hand" in summary(found, is_search=True)[0]
    rest = await search.go_on(bootstrap, found, now_ms=FIRST_MS, limit=1_000_000)
    assert len(found.records) + len(rest.records) == COUNT // 100


async def test_records_that_cannot_be_judged_are_told(bootstrap: str, topic: str) -> None:
    search = search_of(topic, "since=earliest&limit=1000000&cel=value.customer+%3D%3D+3")
    found = await search.read(bootstrap, now_ms=FIRST_MS, limit=100)
    words, told = summary(found, is_search=True)
    assert "all of them" in words
    (one,) = told
    assert one.startswith(f"{COUNT:,} records could not be judged")
    assert one.endswith("'customer'")


async def test_a_partition_that_is_not_there_is_named(bootstrap: str, topic: str) -> None:
    with pytest.raises(NoSuchPartitionError, match=f"{topic} has no partition 3"):
        await search_of(topic, "partition=1-3").read(bootstrap, now_ms=0, limit=1)


def test_the_command_line_searches_alike(bootstrap: str, topic: str, tmp_path: Path) -> None:
    line = CommandLine(bootstrap=bootstrap, bus=bootstrap, folder=tmp_path)
    base = ("tail", topic, "--offset", "earliest", "-e", "--partition", "0,2")
    found = line.run(*base, "--cel", "value.status == 'failed'", "--format", "%o\n")
    assert len(found.splitlines()) == 80
    limited = line.run(*base, "--regex", "nowhere", "--scan-limit", "1000")
    assert "0 match; 1,000 records scanned" in limited
    assert "--scan-limit 1000 ends it" in limited
    whole = line.run(*base, "--regex", "nowhere", "--scan-limit", "8000")
    assert "8,000 records read, no match" in whole
    assert "8,000 records read" in line.run(*base, "--key", "")
    for option in ("--header", "--cel", "--json-path", "--partition"):
        assert f"{option} is empty" in line.run(*base, option, "", status=2)
    here = ("tail", topic, "-e", "--partition", "0,2", "--offset")
    beyond = line.run(*here, "4001", status=2)
    assert lacking(beyond, f"{topic}-0", "0 to 4000", f"{topic}-2") == []
    assert "--since 1700000000" in line.run(*here, "1700000000", status=2)
    assert "0 to" not in line.run(*here, "3999", "--format", "%o\n")
    wrong = line.run(*base, "--json-path", "$.a[", status=2)
    assert "json path: '$.a[' at its end" in wrong
