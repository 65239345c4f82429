"""A preview tells the time that moves on this cluster have taught."""

from control.model.watched_cluster import Site
from control.move.events import Outcome
from control.move.results import Misses
from control.move.state import OperationState, Phase
from control.move.throttle import THROTTLE_NONE
from control.operations.reassignment.planning import Preview, preview_of
from control.operations.reassignment.preview_history import with_past
from planner.proposal import Proposal
from tests.unit.control.operations.reassignment.test_preflight import FACTS, MOVE

MIB = 1 << 20
PROPOSAL = Proposal(name="plan", changes=(MOVE,))
LATE = Misses(foreseen=3.0, left=(), is_adaptive=False)
PAST = [
    OperationState(
        operation_id=f"mv-{number}",
        phase=Phase.FINISHED,
        outcome=Outcome.DONE,
        bootstrap="a:1,b:1",
        finished_ms=number,
        misses=LATE,
    )
    for number in range(30)
]


def told(preview: Preview) -> dict[str, str]:
    return {check.name: check.reason for check in preview.checks}


def test_moves_that_took_longer_than_foreseen_make_the_next_one_longer() -> None:
    made = preview_of(FACTS, PROPOSAL, throttle=MIB)
    learned = with_past(made, PAST, site=Site("b:1"), throttle=MIB)
    assert made.seconds_max is not None
    assert learned.seconds_max is not None
    assert learned.seconds_max > made.seconds_max + 1
    assert told(learned)["time"] != told(made)["time"]
    assert told(learned)["other operators"] == "nobody moves anything"


def test_other_clusters_teach_nothing_and_without_a_throttle_nothing_is_foreseen() -> None:
    made = preview_of(FACTS, PROPOSAL, throttle=MIB)
    learned = with_past(made, PAST, site=Site("c:1"), throttle=MIB)
    assert told(learned)["time"] == told(made)["time"]
    made = preview_of(FACTS, PROPOSAL, throttle=THROTTLE_NONE)
    learned = with_past(made, PAST, site=Site("a:1"), throttle=THROTTLE_NONE)
    assert (learned.seconds_min, learned.seconds_max) == (None, None)
    assert "unknown without a throttle" in told(learned)["time"]
