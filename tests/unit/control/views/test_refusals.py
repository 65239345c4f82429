"""Which controls of a reassignment are refused, and why."""

from control.move.state import OperationState, Phase
from control.views.refusals import move_refusals

ACTIONS = ("pause", "resume", "cancel", "rollback")
SUBMITTED = OperationState(operation_id="mv-1", phase=Phase.SUBMITTED)


def test_a_control_that_makes_no_sense_now_says_so() -> None:
    refused = move_refusals(SUBMITTED, ACTIONS)
    assert refused.keys() == {"pause", "resume", "rollback"}
    assert set(refused.values()) == {"not possible: the reassignment is submitted"}


def test_a_right_that_lacks_refuses_every_control() -> None:
    assert move_refusals(SUBMITTED, ACTIONS, denied="why") == dict.fromkeys(ACTIONS, "why")
