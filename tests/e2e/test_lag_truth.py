"""On the demo cluster every lag is what kafka-consumer-groups says between two samples."""

import os
import signal
import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest

from tests.support.installation import Installation
from tests.support.kafka_oracle import run_tool
from tests.support.settle import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.kafka_oracle,
    pytest.mark.soak,
    pytest.mark.timeout(600),
]
TOOL: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
ROUNDS: Final = 3


class Pair(NamedTuple):
    """A partition as a group reads it."""

    group: str
    topic: str
    partition: int


class Figures(NamedTuple):
    """Offsets of a pair, and their difference."""

    committed: int
    end: int
    lag: int


Seen = dict[Pair, Figures]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """``partiscope up`` with its demo load."""
    with Installation(tmp_path_factory.mktemp("up")) as installation:
        installation.wait_ready()
        yield installation


def stored(installation: Installation) -> Seen:
    """What the store shows now; only what was paired with an end offset."""
    aggregates = installation.aggregates()
    rows: list[dict[str, Any]] = (
        [] if aggregates is None else aggregates.tables["commits"].to_pylist()
    )
    return {
        Pair(row["group_id"], row["topic"], row["partition"]): Figures(
            row["committed_offset"], row["end_offset"], row["lag"]
        )
        for row in rows
        if row["lag"] is not None
    }


def told(installation: Installation) -> Seen:
    """What kafka-consumer-groups prints."""
    flags = ("--bootstrap-server", installation.bootstrap, "--describe", "--all-groups")
    done = run_tool(TOOL, *flags)
    assert done.returncode == 0, done.stderr
    found: Seen = {}
    for line in done.stdout.splitlines():
        words = line.split()
        if len(words) >= 6 and all(word.isdigit() for word in words[2:6]):
            key = Pair(words[0], words[1], int(words[2]))
            found[key] = Figures(*map(int, words[3:6]))
    return found


def oldest_ms(installation: Installation) -> int:
    """When the oldest of all commits that the store shows was read."""
    aggregates = installation.aggregates()
    assert aggregates is not None
    return min(aggregates.tables["commits"]["read_ms"].to_pylist(), default=0)


def later(installation: Installation) -> Seen:
    """What the store shows when everything in it was read after now."""
    now_ms = time.time_ns() // 1_000_000
    wait_until(lambda: oldest_ms(installation) > now_ms, "newer samples", story=installation.story)
    return stored(installation)


def test_every_lag_is_what_kafkas_own_tool_tells(running: Installation) -> None:
    wait_until(lambda: len({pair.group for pair in stored(running)}) >= 3, "groups that lag")
    # A demo that has just begun commits on ever more partitions.
    wait_until(lambda: stored(running).keys() == told(running).keys(), "all pairs in the store")
    for _ in range(ROUNDS):
        before, between, after = stored(running), told(running), later(running)
        pairs = before.keys() & between.keys() & after.keys()
        assert len(pairs) == len(between)
        for pair in pairs:
            first, tool, last = before[pair], between[pair], after[pair]
            story = f"{pair}: {first}, the tool {tool}, then {last}"
            assert first.committed <= tool.committed <= last.committed, story
            assert first.end <= tool.end <= last.end, story
            assert first.end - last.committed <= tool.lag <= last.end - first.committed, story
            assert (last.lag, first.lag) == (
                max(0, last.end - last.committed),
                max(0, first.end - first.committed),
            ), story
    demo = running.pid_of("partiscope demo")
    os.kill(demo, signal.SIGSTOP)
    try:
        assert_all_equal(running)
    finally:
        os.kill(demo, signal.SIGCONT)


def assert_all_equal(running: Installation) -> None:
    """Nothing moves any more: then every figure of every pair is the tool's."""
    seen: list[tuple[Seen, Seen]] = []

    def is_equal() -> bool:
        seen[:] = [(stored(running), told(running))]
        return seen[0][0] == seen[0][1] != {}

    def story() -> str:
        ours, theirs = seen[0]
        return str(
            {pair: (ours.get(pair), it) for pair, it in theirs.items() if ours.get(pair) != it}
        )

    wait_until(is_equal, "every lag is the tool's", timeout_s=180, story=story)
