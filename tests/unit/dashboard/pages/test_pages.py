"""Every view builds from rows, says what it should, and nests nothing that React refuses."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from control.model.ids import TopicPartition
from control.move.events import (
    Event,
    EventKind,
    MoveProgress,
    MovingPartition,
    Outcome,
    StalledMove,
)
from control.move.results import Fate
from control.move.state import OperationState, Phase
from control.views.snapshots.snapshot import build_snapshot
from dashboard import ids, router
from dashboard.context import PageContext
from dashboard.page_frame import shell
from dashboard.pages import (
    broker,
    group,
    journal,
    lists,
    overview,
    partition,
    what_if,
)
from dashboard.pages.reassignments import (
    move,
    moves,
)
from planner.proposal import PartitionChange
from tests.support.phrases import lacking
from tests.unit.control import clusters
from tests.unit.control.clusters import log_dir
from tests.unit.dashboard.page_context import context_on, has_nested_lists, words_of

PATHS = (
    "/", "/overview", "/findings", "/topics", "/topics/topic-1", "/partitions",
    "/topics/topic-1/partitions/2", "/topics/topic-1/partitions/2/segments", "/brokers",
    "/brokers/102", "/groups", "/groups/group-1", "/map", "/plan", "/moves", "/moves/mv-1",
    "/produce", "/produce/topic-2", "/journal", "/what-if", "/browse/topic-1",
    "/browse/topic-1?partition=1&offset=3", "/what-if?broker=102", "/job", "/clusters",
)  # fmt: skip


@pytest.fixture
def context(tmp_path: Path) -> PageContext:
    return context_on(tmp_path, bootstrap="127.0.0.1:1")


def split(path: str) -> tuple[str, str]:
    """Path and search, as a browser tells them apart."""
    before, mark, after = path.partition("?")
    return before, mark + after


@pytest.mark.parametrize("path", PATHS)
def test_every_path_has_a_view(context: PageContext, path: str) -> None:
    view = router.view(context, *split(path))

    assert "Nothing here" not in words_of(view)
    assert not has_nested_lists(view)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/nowhere", "there is no view 'nowhere'"),
        ("/brokers/x", "'x' is not the number"),
    ],
)
def test_what_is_not_there_is_said(context: PageContext, path: str, words: str) -> None:
    assert words in words_of(router.view(context, path, ""))


@pytest.mark.parametrize("path", PATHS)
def test_every_view_stands_on_an_empty_store(tmp_path: Path, path: str) -> None:
    router.view(context_on(tmp_path, sizes=None), *split(path))


def test_the_overview_of_an_empty_store_says_what_to_do(tmp_path: Path) -> None:
    snapshot = context_on(tmp_path, sizes=None).snapshot

    assert "No data yet" in words_of(overview.findings(snapshot))
    assert "partiscope doctor" in words_of(overview.findings(snapshot))
    assert "No consumer group" in words_of(overview.group_block(snapshot))


def test_the_overview_tells_findings_brokers_and_groups(context: PageContext) -> None:
    snapshot = context.snapshot
    findings = words_of(overview.findings(snapshot))

    assert "▲ group-2 STOP on topic-2-0" in findings
    assert "Start its consumers again" in findings
    assert "★ 101 ✔ alive a" in words_of(overview.blocks(snapshot)[2])
    assert "▲ STOP 20,000" in words_of(overview.group_block(snapshot))
    assert "partitions 12" in words_of(overview.tiles(snapshot))


def test_charts_of_the_overview_have_history(context: PageContext) -> None:
    throughput, lag = overview.history_figures(context, context.snapshot, "light", context.span())

    assert [line["name"] for line in throughput["data"]] == ["in", "out"]
    assert [line["name"] for line in lag["data"]][:2] == ["group-2", "group-1"]


def test_a_partition(context: PageContext) -> None:
    name = TopicPartition("topic-1", 2)
    tiles, replicas, groups, segments = partition.blocks(context.snapshot, name)

    assert "leader ★ 101" in words_of(tiles)
    assert "✔ in sync" in words_of(replicas)
    assert "group-1 ◆ WARN 2,000" in words_of(groups)
    assert "active" in words_of(segments)
    drawn = partition.figures(context, context.snapshot, name, "dark", context.span())
    assert [line["name"] for line in drawn[2]["data"]] == ["group-1"]
    assert len(drawn[3]["data"][0]["y"]) == 2


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/topics/topic-9", "no topic topic-9 Did you mean topic-"),
        ("/topics/gone", "no topic gone If it is"),
        ("/topics/gone/partitions/0", "There is no topic gone"),
        ("/topics/topic-1/partitions/77", "topic-1 has no partition 77 It has 0 to 3"),
        ("/topics/topic-1/partitions/77/segments", "topic-1 has no partition 77"),
        ("/produce/gone", "There is no topic gone"),
        ("/browse/gone", "There is no topic gone"),
        ("/browse/__cluster_metadata", "no topic __cluster_metadata Only controllers replicate"),
        ("/groups/gone", "There is no group gone"),
        ("/groups/group%22%3C", 'There is no group group"<'),
        ("/brokers/999", "No broker 999 is registered Registered are 101, 102, 103"),
    ],
)
def test_what_is_not_there_is_said_and_nothing_is_offered(
    context: PageContext, path: str, words: str
) -> None:
    view = router.view(context, path, "")
    assert words in words_of(view)
    _, existing, missing = view
    assert (missing.hidden, existing.hidden) == (False, True)
    assert words_of(existing) == ""


@pytest.mark.parametrize("path", ["/topics/topic-1", "/groups/group-1", "/brokers/101"])
def test_what_is_there_is_not_called_missing(context: PageContext, path: str) -> None:
    _, existing, missing = router.view(context, path, "")
    assert (missing.hidden, words_of(missing), existing.hidden) == (True, "", False)
    assert words_of(existing)


def test_of_a_cluster_that_is_not_known_yet_nothing_is_missing(tmp_path: Path) -> None:
    _, _, missing = router.view(context_on(tmp_path, sizes=None), "/topics/orders", "")
    assert missing.hidden


def test_a_group(context: PageContext) -> None:
    words = words_of(group.group_tiles(context.snapshot, "group-2"))

    assert "status ▲ STOP" in words
    assert "lag 20,000" in words


def test_a_topic(context: PageContext) -> None:
    words = words_of(lists.topic_tiles(context.snapshot, "topic-1"))

    assert "partitions 4" in words
    assert "replication factor 3" in words


def test_what_a_lost_broker_would_do(context: PageContext) -> None:
    words = words_of(what_if.answer_block(context.snapshot, "broker=102"))

    assert "offline 0" in words or "offline ✔ 0" in words
    assert "new leaders 4" in words
    assert "broker 102 fenced or down" in words
    assert "Choose a broker or a rack" in words_of(what_if.answer_block(context.snapshot, None))


def test_the_map_of_a_plan_that_is_gone_leads_to_its_form(context: PageContext) -> None:
    shown = str(router.view(context, *split("/map?plan=gone&measure=leaders&topics=orders")))
    assert "This plan is gone" in shown
    assert "href='/plan?topics=orders'" in shown


def test_the_journal_lists_what_was_done(context: PageContext) -> None:
    assert "Nothing was changed yet" in words_of(journal.journal_block(context))
    done = Event(
        operation_id="do-1",
        kind=EventKind.JOURNAL,
        at_ms=1,
        message="create topic new",
        data={"who": "ada@host", "reason": "a test"},
    )

    context.actions.moves.take(done)

    assert "create topic new ✔ done ada@host a test" in words_of(journal.journal_block(context))


def test_a_broker(context: PageContext) -> None:
    words = words_of(broker.broker_tiles(context.snapshot, 103))

    assert "rack c" in words
    assert "disk 40 %" in words
    assert "Log directories" not in words


def test_several_log_directories_are_rows_of_their_brokers_page() -> None:
    directories = [
        log_dir("/small", total_bytes=1_000, usable_bytes=20, replicas=3, is_cordoned=True),
        log_dir("/large", is_failed=True),
    ]
    tables = clusters.tables(brokers=[clusters.broker(1, directories=directories)])
    found = broker.broker_tiles(build_snapshot(tables, version=1, now_ms=clusters.NOW_MS), 1)
    words = words_of(found)
    assert not lacking(words, "Log directories", "/large", "failed", "/small", "cordoned", "98 %")


def test_top_bar(context: PageContext) -> None:
    left, right = shell.top_bar_texts(context.snapshot, context.now_ms())
    words = [[it for it in re.split(r"<[^>]*>", side) if it] for side in (left, right)]

    assert words[0] == ["test-cluster", "3/3 brokers", "controller 101", "▲ 1 finding"]
    assert words[1][-1] == "✔ job 0.3 s"
    assert re.search(rf'<span [^>]*id="{ids.HEAD_MOVING}"[^>]*></span>', left), "nothing moves"


def test_a_move_shows_how_far_it_is_and_what_stands_still(context: PageContext) -> None:
    change = PartitionChange(topic="t", partition=1, before=(1,), after=(2,), size_bytes=4096)
    state = OperationState(
        operation_id="mv-1",
        phase=Phase.RUNNING,
        started_ms=1,
        changes=(change,),
        throttle_bytes_per_s=1024,
        throttle={"rate": 1024},
        progress=MoveProgress(
            bytes_done=1024, bytes_total=4096, partitions_done=0, partitions_total=1, wave=1,
            waves=3, stalled=(StalledMove(topic="t", partition=1, reason="broker 2 is down"),),
            moving=(
                MovingPartition(
                    topic="t", partition=1, bytes_done=1024, bytes_total=4096,
                    rate_bytes_per_s=256.0, eta_s_low=10.0, eta_s_high=14.0,
                ),
            ),
        ),
    )  # fmt: skip

    block = move.move_block(context, state)

    words = words_of(block)
    assert "1.0 KiB of 4.0 KiB" in words
    assert "wave 1 of 3" in words
    assert "t-1 stands still: broker 2 is down" in words
    assert "throttle 1.0 KiB/s" in words
    assert "t-1 25 % 1.0 KiB of 4.0 KiB 256 B/s in ≈ 10 s–14 s ▲ broker 2 is down" in words
    assert not has_nested_lists(block)
    assert block[0].children.style["width"] == "25.0%"
    assert re.search(r"as of .*\d\d:\d\d", words)
    assert "no news" not in words
    context.actions.moves.trouble = "no broker answered"
    assert "no news: no broker answered" in words_of(move.move_block(context, state))
    done = replace(state, phase=Phase.FINISHED, outcome=Outcome.DONE)
    assert "no news" not in words_of(move.move_block(context, done))


def test_a_cancelled_move_says_which_moved_went_back_and_never_began(context: PageContext) -> None:
    changes = tuple(
        PartitionChange(topic="t", partition=n, before=(1,), after=(2,), size_bytes=1)
        for n in range(3)
    )
    state = OperationState(
        operation_id="mv-1", phase=Phase.FINISHED, outcome=Outcome.CANCELLED, changes=changes,
        started_ms=1, told_fates=(Fate.MOVED, Fate.WENT_BACK, Fate.NEVER_BEGAN),
    )  # fmt: skip

    words = words_of(move.move_block(context, state))

    assert "1 moved, 1 went back, 1 never began" in words
    order = [words.index(name) for name in ("t-1 1 2", "t-2 1 2", "t-0 1 2")]
    assert order == sorted(order), "what moved comes last"
    running = replace(state, outcome=None, phase=Phase.RUNNING, told_fates=())
    assert "ended" not in words_of(move.move_block(context, running))


def test_a_refused_move_leads_to_its_form(context: PageContext) -> None:
    changes = tuple(
        PartitionChange(topic=topic, partition=0, before=(1,), after=(2,), size_bytes=1)
        for topic in ("b", "a b", "b")
    )
    running = OperationState(operation_id="mv-1", phase=Phase.RUNNING, changes=changes)
    refused = replace(running, phase=Phase.FINISHED, outcome=Outcome.REFUSED)

    assert "/plan?topics=a%20b,%20b" in str(move.move_block(context, refused))
    assert "plan again" not in words_of(move.move_block(context, running))
    many = replace(refused, changes=tuple(replace(changes[0], topic="t" * n) for n in range(1, 30)))
    assert "href='/plan'" in str(move.move_block(context, many))


def test_moves_that_cannot_be_read_say_why(context: PageContext) -> None:
    context.actions.moves.trouble = "no broker answered"

    assert "no broker answered" in words_of(moves.moves_block(context))
    context.actions.moves.trouble = ""
    assert "No reassignments yet" in words_of(moves.moves_block(context))
