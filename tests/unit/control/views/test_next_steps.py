"""A finding's next step leads to what mends it, filled in."""

import pytest

from control.model.finding import Finding, Operation
from control.model.status import Severity
from control.views.next_steps import action_of
from control.views.paths import parse_path
from control.views.tables.findings import finding_row


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


def test_what_nothing_mends_opens_its_subject() -> None:
    opened = action_of(finding_row(finding("stale", Operation.OPEN), now_ms=2))

    assert opened.path == "brokers/103"
