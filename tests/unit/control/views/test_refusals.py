"""Which controls of a reassignment are refused, and why."""

from control.access.login import Login
from control.access.roles import EVERYWHERE, Role
from control.move.state import OperationState, Phase
from control.operations.catalogue import MOVE_OPERATIONS
from control.views.refusals import move_refusals, refusals

ACTIONS = ("pause", "resume", "cancel", "rollback")
SUBMITTED = OperationState(operation_id="mv-1", phase=Phase.SUBMITTED)


def test_a_control_that_makes_no_sense_now_says_so() -> None:
    refused = move_refusals(SUBMITTED, ACTIONS, denied={})
    assert refused.keys() == {"pause", "resume", "rollback"}
    assert set(refused.values()) == {"not possible: the reassignment is submitted"}


def test_each_control_is_refused_by_its_own_right() -> None:
    running = OperationState(operation_id="mv-1", phase=Phase.RUNNING)
    refused = move_refusals(running, ACTIONS, denied={"reassign": "why", "cancel": "why not"})
    assert "pause" not in refused
    assert refused["cancel"] == "why not"


def test_where_nothing_may_be_changed_every_control_is_refused() -> None:
    for told in (
        refusals(None, is_read_only=True),
        refusals(None, is_read_only=False, is_past=True),
    ):
        assert move_refusals(SUBMITTED, ACTIONS, denied=told).keys() == set(ACTIONS)
        assert told.keys() >= {it.FORM.name for it in MOVE_OPERATIONS}


def test_a_role_with_a_brake_alone_has_that_brake() -> None:
    role = Role(name="watch", operations=frozenset({"pause", "cancel"}))
    login = Login(name="w", roles={EVERYWHERE: role})
    running = OperationState(operation_id="mv-1", phase=Phase.RUNNING)
    refused = move_refusals(running, ACTIONS, denied=login.refusals("prod"))
    assert refused.keys() == {"resume", "rollback"}
