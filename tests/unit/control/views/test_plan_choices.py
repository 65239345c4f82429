"""Alternatives on offer: kept as plain data, edited by hand, found again, confirmed as reviewed."""

import json
from collections.abc import Mapping
from functools import cache
from typing import cast

import pytest

from control.operations.errors import NotReviewedError, PlanGoneError
from control.operations.operation_session import OperationSession
from control.views import plan_choices
from control.views.plan_choices import PREFLIGHT_FIELDS, PlanChoices, edited, recalled
from planner.by_hand import edited as placed
from planner.by_hand import parse_edits
from planner.goals import PlanRequest
from planner.optimizer import Plan, judged_plan, plan
from planner.planned_map import KeptPlans, plan_name
from planner.proposal import Proposal
from tests.unit.planner.clusters import seeded

CLUSTER = seeded(4, joined=3, disorder=0.3)
VALUES = {**dict.fromkeys(PREFLIGHT_FIELDS, ""), "throttle": "auto", "reason": "new disks"}


@cache
def made() -> Plan:
    return plan(CLUSTER, PlanRequest())


class Session:
    """Keeps plans and edits them, without a cluster."""

    def __init__(self) -> None:
        self.plans = KeptPlans()
        self.plans.keep(made(), VALUES)

    async def edit(self, chosen: Proposal, entries: str, values: Mapping[str, str]) -> Plan:
        """As ``OperationSession`` does."""
        made = judged_plan(CLUSTER, PlanRequest(), placed(CLUSTER, chosen, parse_edits(entries)))
        return self.plans.keep(made, values, base=plan_name(chosen), entries=entries)


def entries_of(proposal: Proposal) -> str:
    """One of its partitions stays as it is."""
    return f"{proposal.changes[0].key}: now"


async def with_edit(session: Session, choices: PlanChoices, entries: str) -> PlanChoices:
    return await edited(cast("OperationSession", session), choices, entries, VALUES)


def test_choices_are_the_same_after_a_browser_has_kept_them() -> None:
    choices = PlanChoices.of_plan(made())
    assert len(choices.items) > 1
    assert PlanChoices.of_data(json.loads(json.dumps(choices.data))) == choices
    assert choices.chosen.proposal(Session().plans) == made().alternatives[0].proposal
    with pytest.raises(PlanGoneError):
        choices.chosen.proposal(KeptPlans())


async def test_a_second_edit_begins_with_what_was_typed_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, planned = Session(), PlanChoices.of_plan(made())
    chosen = made().alternatives[0].proposal
    assert planned.entries_to_edit(session.plans) == "", "336 partitions are not written out"
    monkeypatch.setattr(plan_choices, "ENTRIES_MAX", len(chosen.changes))
    assert parse_edits(planned.entries_to_edit(session.plans)) == chosen.targets()
    edited_once = await with_edit(session, planned, entries_of(chosen))
    assert edited_once.entries_to_edit(session.plans) == entries_of(chosen)
    with pytest.raises(PlanGoneError):
        planned.entries_to_edit(KeptPlans())


async def test_an_edit_is_one_more_choice_and_the_next_replaces_it() -> None:
    session, planned = Session(), PlanChoices.of_plan(made())
    entries = entries_of(made().alternatives[0].proposal)
    one = await with_edit(session, planned, entries)
    assert (len(one.items), one.at) == (len(planned.items) + 1, len(planned.items))
    assert one.chosen.base == one.base.name == planned.chosen.name
    assert one.has_judged(f" {entries} ")
    assert not one.has_judged("")
    assert planned.has_judged("")
    two = await with_edit(session, one, f"{made().alternatives[0].proposal.changes[1].key}: now")
    assert len(two.items) == len(one.items)
    assert two.base.name == planned.chosen.name
    assert await with_edit(session, two, "") == planned


async def test_a_kept_plan_is_on_offer_again_with_what_was_typed() -> None:
    session, planned = Session(), PlanChoices.of_plan(made())
    second = recalled(session.plans, planned.items[1].name)
    assert (second.choices.items, second.choices.at) == (planned.items, 1)
    assert second.entries == ""
    entries = entries_of(made().alternatives[0].proposal)
    one = await with_edit(session, planned, entries)
    again = recalled(session.plans, one.chosen.name)
    assert again.choices == one
    assert again.entries == entries
    with pytest.raises(PlanGoneError):
        recalled(session.plans, "0" * 12)


async def test_nothing_is_confirmed_but_what_was_reviewed() -> None:
    choices = PlanChoices.of_plan(made())
    reviewed = choices.reviewed(VALUES)
    choices.require_reviewed(reviewed, {**VALUES, "reason": "another"}, "")
    for other, values in (
        (choices, {**VALUES, "throttle": "none"}),
        (PlanChoices(items=choices.items, at=1), VALUES),
    ):
        with pytest.raises(NotReviewedError):
            other.require_reviewed(reviewed, values, "")
    with pytest.raises(NotReviewedError, match="by hand"):
        choices.require_reviewed(reviewed, VALUES, "t-0: 1,2")
