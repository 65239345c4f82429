"""The search of every placement gives up in time."""

from planner.disks.every_placement import search_all
from planner.goals import Goal, PlanRequest
from planner.search.placement import Placement
from tests.unit.planner.clusters import cluster


def test_a_search_in_vain_judges_no_more_placements_than_it_has_time_for() -> None:
    before = cluster(dict.fromkeys(range(1, 7)), [(p % 6 + 1,) for p in range(10)])
    request = PlanRequest(goal=Goal.REPLICATION, replication_factor=1)
    judged = 0

    def never(_: Placement) -> bool:
        nonlocal judged
        judged += 1
        assert judged < 2_500
        return False

    assert search_all(Placement(before, request), list(range(10)), never) is None
    assert judged > 500
