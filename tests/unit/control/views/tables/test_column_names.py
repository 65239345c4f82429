"""One name for each column: the head as one word, in filters, choices of columns and orders."""

from collections import Counter

import pytest

from control.views.snapshots.snapshot import LISTS, OperatorSnapshot, build_snapshot, list_page
from control.views.tables.filters import FieldKind
from control.views.tables.query import Page, TableQuery
from tests.support.phrases import lacking
from tests.unit.control.clusters import NOW_MS, commit, group, partition, tables

VALUES = {
    FieldKind.TEXT: "a",
    FieldKind.NUMBER: "7",
    FieldKind.DURATION: "7s",
    FieldKind.IDS: "7",
    FieldKind.WORDS: "ok",
}


@pytest.fixture(scope="module")
def snapshot() -> OperatorSnapshot:
    return build_snapshot(
        tables(
            partitions=[partition("orders", 0, [101])],
            commits=[commit("billing", "orders", 0, lag=5)],
            groups=[group("billing")],
        ),
        version=1,
        now_ms=NOW_MS,
    )


@pytest.mark.parametrize("name", LISTS)
def test_filters_columns_and_orders_take_each_name_of_each_column(
    snapshot: OperatorSnapshot, name: str
) -> None:
    kind = LISTS[name].kind
    listed = {it.id for it in kind.columns}
    for it in (*kind.columns, *kind.unlisted):
        value = VALUES[it.filters[it.name].kind]
        for word in (it.title, it.title.upper(), it.name, it.name.replace("_", "-"), *it.filters):
            where = f'"{word}":{value}' if " " in word else f"{word}:{value}"
            asked = [TableQuery(filter=where), TableQuery(filter=f"-{where}")]
            if it.sort:
                asked += [TableQuery(sort=word), TableQuery(sort=f"-{word}")]
            if it.id in listed:
                asked.append(TableQuery(columns=f"{word},{word}"))
            pages = [list_page(snapshot, name, query) for query in asked]
            assert [page.problem for page in pages] == [""] * len(pages), (word, pages)
            if it.id in listed:
                assert {shown.id for shown in pages[-1].columns} <= {kind.columns[0].id, it.id}


@pytest.mark.parametrize("name", LISTS)
def test_a_name_is_one_column(name: str) -> None:
    kind = LISTS[name].kind
    names = Counter(word for it in (*kind.columns, *kind.unlisted) for word in it.filters)
    assert [word for word, count in names.items() if count > 1] == []


@pytest.mark.parametrize("name", LISTS)
def test_an_unknown_name_is_told_alike_and_heads_are_listed(
    snapshot: OperatorSnapshot, name: str
) -> None:
    kind = LISTS[name].kind
    for query in (
        TableQuery(filter="statsu:x"),
        TableQuery(sort="-statsu"),
        TableQuery(columns="statsu"),
    ):
        told = list_page(snapshot, name, query).problem
        names = [it.name for it in kind.columns]
        assert lacking(told, "'statsu'", "did you mean status?", *names) == [], told


def test_what_is_like_an_older_name_is_told_by_it(snapshot: OperatorSnapshot) -> None:
    page: Page = list_page(snapshot, "groups", TableQuery(sort="velocitty"))
    assert lacking(page.problem, "'velocitty'", "did you mean lag_trend?") == []
