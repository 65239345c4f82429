"""Tables of one group as its coordinator describes it: what each partition of it says."""

from typing import Final

from control.kafka.ports import GroupDescription, GroupMember, ListedGroup, ShareOffset
from control.model.ids import TopicPartition
from control.views.tables.group_parts import (
    LISTED,
    OFFSETS,
    SHARE_OFFSETS,
    lags_of,
    listed_rows,
    member_rows,
    offset_rows,
    share_offset_rows,
)
from control.views.tables.rows import Row

KEYS: Final = [TopicPartition("orders", number) for number in range(5)]


def _told(row: Row, *ids: str) -> tuple[object, ...]:
    return tuple(row.cell(name).value for name in ids)


def test_the_worst_partitions_come_first_and_each_says_what_is_wrong() -> None:
    committed = {KEYS[0]: 90, KEYS[1]: 500, KEYS[2]: 10, KEYS[3]: 100}
    rows = offset_rows(committed, {KEYS[4]: "app-1"}, dict.fromkeys(KEYS, (20, 1_100)))
    told = [_told(row, "partition", "lag", "to_read", "note", "client") for row in rows]
    assert told == [
        (2, 1_090, 1_080, "10 lost: deleted before they were read", None),
        (4, None, 1_080, "no commit", "app-1"),
        (0, 1_010, 1_010, None, None),
        (3, 1_000, 1_000, None, None),
        (1, 600, 600, None, None),
    ]
    assert rows[1].committed.text == "no commit"
    assert rows[2].lag.text == "1,010"
    assert lags_of(rows) == dict(zip(KEYS[:4], (1_010, 600, 1_090, 1_000), strict=True))
    assert set(rows[0].cells) == {it.id for it in OFFSETS.columns}


def test_a_commit_beyond_the_end_has_no_lag() -> None:
    (row,) = offset_rows({KEYS[0]: 500}, {}, {KEYS[0]: (0, 100)})
    assert (row.lag.text, row.to_read.text) == ("–", "–")
    assert row.note.text == "committed 400 beyond the end; reset it"


def test_a_log_that_is_not_known_is_a_row_with_its_reason() -> None:
    why = {KEYS[1]: "it has no leader"}
    rows = offset_rows({KEYS[0]: 90, KEYS[1]: 7}, {}, {KEYS[0]: (0, 100)}, why)
    told = {row.partition.text: (row.committed.text, row.end.text, row.lag.text) for row in rows}
    assert told == {"0": ("90", "100", "10"), "1": ("7", "n/a", "n/a")}
    assert rows[0].note.text == "not known: it has no leader", "first, for it is wrong"
    assert lags_of(rows) == {KEYS[0]: 10, KEYS[1]: None}
    (row,) = share_offset_rows({KEYS[1]: ShareOffset(start=7, lag=None)}, {}, why)
    assert (row.end.text, row.note.text) == ("n/a", "not known: it has no leader")


def test_a_share_group_has_the_lag_that_its_broker_tells_or_a_bound() -> None:
    offsets = {
        KEYS[0]: ShareOffset(start=None, lag=None),
        KEYS[1]: ShareOffset(start=60, lag=None),
        KEYS[2]: ShareOffset(start=60, lag=7),
    }
    rows = share_offset_rows(offsets, dict.fromkeys(offsets, 100))
    told = [_told(row, "partition", "start", "end", "lag", "note") for row in rows]
    assert told == [
        (2, 60, 100, 7, None),
        (0, None, 100, None, None),
        (1, 60, 100, None, "lag unknown, at most 40"),
    ]
    assert [row.start.text for row in rows] == ["60", "–", "60"]
    assert [row.lag.text for row in rows] == ["7", "–", "n/a"]
    assert lags_of(rows) == {KEYS[2]: 7, KEYS[1]: None}
    assert set(rows[0].cells) == {it.id for it in SHARE_OFFSETS.columns}


def test_the_lag_of_a_member_is_a_least_while_that_of_a_partition_is_unknown() -> None:
    assigned = (*KEYS[:3],)
    group = GroupDescription(
        group_id="g",
        state="Stable",
        protocol="range",
        group_type="classic",
        members=(GroupMember(member_id="m", client_id="c", client_host="h", assignment=assigned),),
    )
    cases: list[tuple[dict[TopicPartition, int | None], int | None, str]] = [
        ({KEYS[0]: 5, KEYS[1]: 7, KEYS[2]: 0}, 12, "12"),
        ({KEYS[0]: 5, KEYS[1]: None, KEYS[2]: 0}, None, "≥ 5"),
        ({KEYS[0]: 5, KEYS[1]: 7}, 12, "12"),  # nothing is committed on the third
        ({KEYS[0]: None}, None, "n/a"),
        ({}, None, "n/a"),
    ]
    for lags, value, text in cases:
        (row,) = member_rows(group, lags)
        assert (row.lag.value, row.lag.text) == (value, text)


def test_listed_groups_have_the_columns_of_the_table_of_groups() -> None:
    listed = ListedGroup(group_id="a", state="Stable", protocol_type="consumer", group_type="share")
    (row,) = listed_rows([listed])
    assert [(it.title, row.cell(it.id).value) for it in LISTED.columns] == [
        ("group", "a"),
        ("state", "Stable"),
        ("type", "share"),
    ]
