"""The report of a chaos run names the misfortune that a gap belongs to."""

from tests.support.chaos_report import Misfortune, longest_gaps


def test_a_gap_belongs_to_the_misfortune_that_it_follows() -> None:
    kill = Misfortune(kind="kill", node=1, roles=("leader",), begun_s=10.0)
    stop = Misfortune(kind="stop", node=2, roles=("leader", "controller"), begun_s=20.0)
    acknowledged = [5.0, 9.0, 9.9, 12.0, 12.5, 19.5, 24.0, 24.1]
    assert longest_gaps([kill, stop], acknowledged) == {
        "kill of leader": {"count": 1, "gap_s": 7.0, "node": 1, "at_s": 2.5},
        "stop of leader and controller": {"count": 1, "gap_s": 4.5, "node": 2, "at_s": 9.5},
    }
