"""No row of a group may contradict itself, whatever the job, history or a first reading tell."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from control.model.status import RANKS, UNJUDGED
from control.views.format import NONE, phrase
from control.views.snapshots import snapshot as views
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot
from control.views.tables.rows import Row, Tone
from tests.support.cases import examples
from tests.unit.control.clusters import NOW_MS, commit, group, partition, tables

LOG = (40, 100)
"""Start and end of every log."""
NEVER = "never"
WORDS = ["OK", "WARN", "REWIND", "STOP", "STALL", "BEYOND"]
"""What the job judges."""
WAITS = {"WARN", "STALL", "STOP", "LOST"}
"""Words that are about records that wait."""


def offsets() -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(0, 160)


@st.composite
def told(draw: st.DrawFn, number: int) -> dict[str, Any]:
    """A commit as a store may have it: figures that follow from each other, words that need not."""
    committed = draw(offsets())
    end = draw(st.sampled_from([None, LOG[0], LOG[1]]))
    lag = None if committed is None or end is None else max(0, end - committed)
    lost = None if lag is None or committed is None else max(0, min(LOG[0], end or 0) - committed)
    velocity = draw(st.none() | st.sampled_from([-50.0, -1.5, -0.5, 0.0, 0.5, 3.0]))
    clears = None
    if lag is not None and velocity is not None and velocity < -1 and draw(st.booleans()):
        clears = int(lag / -velocity * 1000)
    return commit(
        "g",
        "t",
        number,
        committed_offset=committed,
        end_offset=end,
        lag=lag,
        lost_records=lost,
        lag_records_per_s=None if lag is None else velocity,
        time_to_clear_ms=0 if lag == 0 else clears,
        stuck_since_ms=NOW_MS - 60_000 if lag and draw(st.booleans()) else None,
        member_id=draw(st.sampled_from([None, "m"])),
        status=draw(st.none() | st.sampled_from(WORDS)),
    )


@st.composite
def groups(draw: st.DrawFn) -> OperatorSnapshot:
    """A group of up to four partitions."""
    commits = [draw(told(number)) for number in range(draw(st.integers(1, 4)))]
    members = draw(st.sampled_from([0, 1]))
    if not members:
        commits = [{**row, "member_id": None} for row in commits]
    made = tables(
        commits=commits,
        groups=[group("g", members=members)],
        partitions=[
            partition("t", number, [1], log_start_offset=LOG[0], high_watermark=LOG[1])
            for number in range(len(commits))
        ],
    )
    return build_snapshot(made, version=1, now_ms=NOW_MS)


def assert_in_step(row: Row, *, is_group: bool = False) -> None:
    """What is said of pace, of waiting and of the verdict fits together. A group has the status of
    its worst partition, and the trend of all."""
    word, velocity = row.status.text, row.velocity.value
    falls = isinstance(velocity, float) and velocity < -1
    assert is_group or not (word == "WARN" and falls), "falls behind and catches up"
    assert not (row.clears.text == NEVER and falls), "shrinks and never clears"
    assert not (row.clears.text == NEVER and word in {"OK", *UNJUDGED}), "well and never"
    assert not (word in WAITS and row.lag.value == 0), "nothing waits"
    assert (row.status.tone is Tone.FINE) == (word == "OK"), "green is OK alone"


@examples(25)
@given(groups())
def test_no_row_contradicts_itself(snapshot: OperatorSnapshot) -> None:
    rows = views.group_partition_page(snapshot, group="g").rows
    for row in rows:
        assert_in_step(row)
        has_commit = row.committed.value is not None
        assert has_commit or (row.lag.value, row.lag.text) == (None, NONE), "no lag is invented"
        assert not (row.status.text == "STALL" and not snapshot_has_members(snapshot))
        assert not (row.status.text == "OK" and row.stuck.tone is Tone.WARNING)
        assert row.status.text != "LOST" or row.loses.text == "now"
        if row.status.text == "OK" and not has_commit:
            assert row.end.value == LOG[0], "an empty log"
    (whole,) = views.group_page(snapshot).rows
    assert_in_step(whole, is_group=True)
    places = [RANKS[it.status.text] for it in rows]
    assert places == sorted(places), "the worst comes first"
    assert rows[0].status.text == whole.status.text or not any(
        it.committed.value is not None for it in rows
    ), "the group is as bad as its worst"
    for rank in set(places):
        lags = [it.lag.value for it in rows if RANKS[it.status.text] == rank]
        known = [it for it in lags if isinstance(it, int)]
        assert known == sorted(known, reverse=True), "then the most lag"
    assert_members_are_told_as_they_are(snapshot)


def assert_members_are_told_as_they_are(snapshot: OperatorSnapshot) -> None:
    """What findings say of a member fits whether there is one."""
    owners = {
        f"{row['topic']}-{row['partition']}": row["member_id"]
        for row in snapshot.commit_table.to_pylist()
    }
    for finding in snapshot.findings:
        words = phrase(finding.reason, finding.facts)
        if "member" in words:
            assert snapshot_has_members(snapshot), words
            assert owners[str(finding.facts["partition"])] is not None, words


def snapshot_has_members(snapshot: OperatorSnapshot) -> bool:
    return bool(snapshot.cluster.groups["members"][0].as_py())
