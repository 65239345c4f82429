"""A finding's next step leads to what mends it, filled in."""

from typing import Any

import pytest

from control.model.finding import Finding, Operation
from control.model.finding_rules import Evidence, find_groups, find_skew
from control.model.status import Severity
from control.operations.catalogue import FORMS
from control.views.next_steps import Action, action_of, plan_command
from control.views.paths import parse_path
from control.views.tables.findings import finding_row
from tests.unit.control.clusters import NOW_MS, broker, commit, group, partition, snapshot


def finding(kind: str, operation: Operation, subject: str = "brokers/103") -> Finding:
    return Finding(
        kind=kind,
        severity=Severity.WARNING,
        subject=subject,
        label="broker 103",
        title="bytes skew +58 %",
        reason="",
        next_step="Plan moves",
        operation=operation,
        since_ms=1,
    )


@pytest.mark.parametrize(
    ("found", "query"),
    [
        (finding("skew-bytes", Operation.REASSIGN), {"goal": "balance"}),
        (finding("skew-leaders", Operation.REASSIGN), {"goal": "leaders"}),
        (finding("disk", Operation.REASSIGN), {"goal": "relieve", "relieve_brokers": "103"}),
        (finding("uneven", Operation.REASSIGN, "topics/orders"), {"topics": "orders"}),
    ],
)
def test_what_is_uneven_opens_the_plan_filled_in(found: Finding, query: dict[str, str]) -> None:
    action = action_of(finding_row(found, now_ms=2))

    path = parse_path(action.path)
    assert path.view == "plan"
    assert query.items() <= path.query.items()
    assert path.query["reason"] == "broker 103: bytes skew +58 %"
    assert not action.form


@pytest.mark.parametrize("kind", ["not-preferred", "skew-leaders"])
def test_leaders_that_need_no_move_open_the_election(kind: str) -> None:
    assert action_of(finding_row(finding(kind, Operation.ELECT), now_ms=2)).form == "elect"


def of_groups(word: str, **known: Any) -> tuple[Finding, Action]:
    """The finding of a group in this status, and where its next step goes."""
    start = known.pop("start", 0)
    told = {"status": word, "lag": 50, "committed_offset": 50, "member_id": "m", **known}
    now = snapshot(
        commits=[commit("gröup", "a/b", 3, **told)],
        groups=[group("gröup")],
        partitions=[partition("a/b", 3, [1], log_start_offset=start)],
    )
    (found,) = find_groups(Evidence.gather(now, now_ms=NOW_MS))
    return found, action_of(finding_row(found, now_ms=NOW_MS))


def test_a_group_that_is_stuck_is_shown_the_record_that_blocks_it() -> None:
    for owner in ("m", None):
        found, action = of_groups("STALL", member_id=owner)
        assert found.next_step.startswith("Browse the record")
        path = parse_path(action.path)
        assert (path.view, path.params) == ("browse", {"topic": "a/b"})
        assert path.query == {"partition": "3", "offset": "50"}


@pytest.mark.parametrize(
    ("word", "known", "to"),
    [
        ("BEYOND", {"committed_offset": 500, "end_offset": 100}, "latest"),
        ("LOST", {"lost_records": 10, "start": 60}, "earliest"),
    ],
)
def test_offsets_to_be_reset_open_the_form_filled_in(
    word: str, known: dict[str, Any], to: str
) -> None:
    found, action = of_groups(word, **known)
    assert "Reset its offsets" in found.next_step
    assert action.form == "reset_offsets"
    given = {"group": "gröup", "topic": "a/b", "partitions": "3", "to": to}
    assert dict(action.given) == given
    (form,) = [it for it in FORMS if it.name == action.form]
    assert given.keys() <= {field.name for field in form.fields}


def test_who_reset_offsets_is_looked_up_in_the_journal() -> None:
    found, action = of_groups("REWIND")
    assert "journal" in found.next_step
    assert action.path == "journal"


def test_what_is_done_elsewhere_leads_nowhere() -> None:
    found, action = of_groups("STOP", member_id=None)
    assert "Start its consumers" in found.next_step
    assert action == Action(path="")
    _, action = of_groups("STOP")
    assert parse_path(action.path).view == "group", "its member is told there"


def test_what_nothing_mends_opens_its_subject() -> None:
    opened = action_of(finding_row(finding("stale", Operation.OPEN), now_ms=2))

    assert opened.path == "brokers/103"


def test_leaders_that_wait_for_a_broker_lead_to_it() -> None:
    brokers = [broker(number, is_fenced=number == 2) for number in (1, 2, 3)]
    partitions = [partition("t", number, [2, 1], leader=1, isr=[1]) for number in range(12)]
    now = snapshot(brokers=brokers, partitions=partitions)
    found = find_skew(Evidence.gather(now, now_ms=NOW_MS))
    (leaders,) = [it for it in found if it.kind == "skew-leaders"]
    assert "Bring back broker 2" in leaders.next_step
    assert action_of(finding_row(leaders, now_ms=NOW_MS)).path == "brokers/2"


def test_a_plan_is_told_as_a_command() -> None:
    disk = finding_row(finding("disk", Operation.REASSIGN), now_ms=2)
    assert plan_command(disk) == "`partiscope plan --goal relieve --relieve-brokers 103`"
    topic = finding_row(finding("uneven", Operation.REASSIGN, "topics/a b"), now_ms=2)
    assert plan_command(topic) == "`partiscope plan --goal balance --topics 'a b'`"
    assert plan_command(finding_row(finding("x", Operation.ELECT), now_ms=2)) == ""
