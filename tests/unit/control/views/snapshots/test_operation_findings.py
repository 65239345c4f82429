"""Findings about operations: what is left behind, and who interferes."""

import asyncio
from types import SimpleNamespace
from typing import Any

from control.kafka.ports import ConfigResource, ConfigScope
from control.model.finding import Finding, Operation
from control.model.status import Severity
from control.model.watched_cluster import WatchedCluster
from control.move.events import EventKind, Outcome
from control.move.state import OperationState
from control.move.throttle import LEADER_RATE
from control.operations.executor.throttles.left_throttles import LeftThrottles, SetThrottle
from control.views.next_steps import action_of
from control.views.snapshots.operation_findings import _read, operation_findings
from control.views.tables.findings import finding_row
from tests.support.phrases import lacking
from tests.unit.control.operations.fake_cluster import FakeContext, change, command_of

NOW_MS = 5_000


def throttles(count: int) -> list[SetThrottle]:
    """One of each of so many brokers."""
    return [
        SetThrottle(
            resource=ConfigResource(scope=ConfigScope.BROKER, name=str(number)),
            config=LEADER_RATE,
            value=str(8 << 20),
        )
        for number in range(1, count + 1)
    ]


def found(*contexts: FakeContext, left: int = 0) -> tuple[Finding, ...]:
    states = [context.state() for context in contexts]
    return tuple(operation_findings(states, throttles(left)))


def test_throttles_that_are_left_are_one_finding_which_opens_their_removal() -> None:
    assert found() == ()
    (finding,) = found(left=7)
    row = finding_row(finding, now_ms=NOW_MS)
    assert (finding.severity, row.title.text) == (Severity.WARNING, "7 throttles left behind")
    assert not lacking(row.reason.text, f"broker 1 {LEADER_RATE} 8.0 MiB/s", "and 2 more")
    assert "`partiscope brokers clear-throttles --dry-run" in row.next_step.text
    assert finding.operation is Operation.CLEAR_THROTTLES
    assert action_of(row).form == "clear_throttles"


def test_a_move_in_which_another_tool_interferes_is_a_finding_while_it_runs() -> None:
    context = FakeContext(command_of(change("a")))
    assert found(context) == ()
    context.told(EventKind.INTERFERED, "removed {braces}", changed=["x"])
    (finding,) = found(context)
    assert (finding.severity, finding.subject) == (Severity.NOTICE, "moves/mv-1")
    assert finding_row(finding, now_ms=NOW_MS).reason.text == "removed {braces}"
    context.told(EventKind.INTERFERED, "again", changed=["x"], stops="why")
    (finding,) = found(context)
    assert finding.severity is Severity.WARNING
    assert not lacking(finding.title + finding.next_step, "stopped", "moves resume mv-1")
    context.told(EventKind.FINISHED, "over", outcome=Outcome.DONE.value)
    assert found(context) == ()


async def test_what_the_bus_tells_is_told_where_the_cluster_is_silent() -> None:
    context = FakeContext(command_of(change("a")))
    context.told(EventKind.INTERFERED, "removed", changed=["x"])

    async def list_moves() -> list[OperationState]:
        return [context.state()]

    moves: Any = SimpleNamespace(list=list_moves)
    admin: Any = SimpleNamespace(list_reassignments=asyncio.Event().wait)
    watched = WatchedCluster(bootstrap="c:1")
    told, running = await _read(admin, LeftThrottles(admin), moves, watched, within_s=0.05)
    assert [finding.kind for finding in told] == ["move-interfered"]
    assert running == (context.state(),)
