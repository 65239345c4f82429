"""Each invariant of the simulated quorum catches the bugs that are planted for it."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from broker.raft.states import context, fetch_answers, leader, requests
from broker.raft.states.follower import Follower
from broker.raft.states.leader import Leader
from broker.raft.states.unattached import Unattached
from broker.raft.vote import Vote
from tests.simulation.raft_cluster import MemoryVotes
from tests.simulation.test_raft import run_chaos

SEEDS: Final = range(60)
Patch = tuple[object, str, Callable[..., Any]]

take_records = Follower._take_records


def _count_itself_twice(self: Leader, core: Any) -> None:
    ends = [self.flushed_offset, *(each.end_offset for each in self.progress.values())]
    ends = sorted([self.flushed_offset, *ends], reverse=True)
    committed = ends[core.config.majority - 1]
    if committed > self.epoch_start_offset and committed > core.high_watermark:
        core.advance_high_watermark(committed)
        self.serve_parked(core)


_FIND_SNAPSHOT: Final = fetch_answers.find_snapshot


def _cut_what_is_committed(self: Follower, core: Any, _diverging: object) -> None:
    core.log.truncate_to(max(core.log.start_offset, core.high_watermark - 1))


def _acknowledge_before_the_disk(self: Follower, core: Any, response: Any) -> None:
    take_records(self, core, response)
    self._waits_for_flush = False


def _send_an_old_snapshot(core: Any, request: Any) -> Any:
    old = core.log.start_snapshot_id if request.fetch_offset % 5 == 0 else None
    return _FIND_SNAPSHOT(core, request) or old


PLANTED: Final[dict[str, tuple[str, list[Patch]]]] = {
    "votes for two candidates in an epoch": (
        "SingleLeader",
        [(Unattached, "grants", lambda _self, _core, _request: True)],
    ),
    "votes for logs that lack what is committed": (
        "CommittedNeverLost",
        [(requests, "_is_up_to_date", lambda _core, _request: True)],
    ),
    "a leader that counts itself twice": (
        "CommittedNeverLost",
        [(Leader, "_maybe_commit", _count_itself_twice)],
    ),
    "a follower that truncates below the high watermark": (
        "HighWatermarkInLog",
        [(Follower, "_truncate", _cut_what_is_committed)],
    ),
    "a follower that acknowledges what its disk lacks": (
        "CountedIsDurable",
        [(Follower, "_take_records", _acknowledge_before_the_disk)],
    ),
    "a snapshot that is adopted below the committed offset": (
        "MonotonicHighWatermark",
        [
            (leader, "find_snapshot", _send_an_old_snapshot),
            (context, "_check_snapshot", lambda _context, _snapshot: None),
        ],
    ),
    "a vote that a restart forgets": (
        "MonotonicEpoch",
        [(MemoryVotes, "read", lambda _self: Vote())],
    ),
}


def _run_all(seeds: range) -> None:
    for seed in seeds:
        for voters_count in (3, 5):
            run_chaos(seed, voters_count)


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_caught_with_its_seed_and_story(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    invariant, patches = PLANTED[bug]
    for patch in patches:
        monkeypatch.setattr(*patch)
    with pytest.raises(AssertionError, match=f"^{invariant}") as caught:
        _run_all(SEEDS)
    story = str(caught.value)
    assert "\nseed " in story
    assert " ms, node " in story


def test_a_seed_tells_the_same_story_twice() -> None:
    first, second = (run_chaos(3, 3, 2).story() for _ in range(2))
    assert first == second
