"""Two operators at once: the second is told, and does not trample."""

from dataclasses import replace

from control.model.watched_cluster import Site
from control.move.check import Check, Verdict
from control.move.conflicts import check_others
from control.move.events import Outcome
from control.move.state import OperationState, Phase
from planner.proposal import PartitionChange
from tests.support.phrases import lacking

MOVE = PartitionChange(topic="t", partition=0, before=(1,), after=(2,), size_bytes=1)
OTHER = replace(MOVE, partition=1)
RUNNING = OperationState(
    operation_id="mv-1", who="ada@ops", bootstrap="a:1,b:1", phase=Phase.RUNNING, changes=(MOVE,)
)


def check(state: OperationState, change: PartitionChange) -> Check:
    return check_others([state], [change], site=Site("b:1"))


def test_the_same_partition_is_refused_with_who_moves_it() -> None:
    found = check(RUNNING, MOVE)
    assert found.verdict is Verdict.FAIL
    assert not lacking(found.reason, "mv-1", "ada@ops", "1 of these", "running")


def test_another_partition_waits() -> None:
    found = check(RUNNING, OTHER)
    assert found.verdict is Verdict.WARN
    assert "begins when it is done" in found.reason


def test_what_is_finished_or_of_another_cluster_is_nobodys_business() -> None:
    done = replace(RUNNING, phase=Phase.FINISHED, outcome=Outcome.DONE)
    assert check(done, MOVE).verdict is Verdict.OK
    elsewhere = replace(RUNNING, bootstrap="c:1")
    assert check(elsewhere, MOVE).verdict is Verdict.OK
    for ids, verdict in ((("X", "X"), Verdict.FAIL), (("X", "Y"), Verdict.OK)):
        by_id = check_others(
            [replace(elsewhere, cluster_id=ids[0])], [MOVE], site=Site("b:1", ids[1])
        )
        assert by_id.verdict is verdict, "the id tells, not the address"
    there = replace(RUNNING, cluster_id="X")
    assert check_others([there], [MOVE], site=Site("b:1", "Y")).verdict is Verdict.OK
