"""The rows of the large tables: what a grid asks becomes a query, what it gets texts and tones."""

from pathlib import Path

import pytest

from control.views import snapshot as views
from control.views.pages import TableQuery
from dashboard.rows import answer_of, count_words, query_of, row_of
from tests.unit.dashboard.screens import screen_on


def test_a_request_becomes_a_query() -> None:
    asked = {"from": "200", "to": "300", "q": "topic:a", "sort": "-lag"}
    assert query_of(asked) == TableQuery(filter="topic:a", sort="-lag", offset=200, limit=100)
    assert query_of({}) == TableQuery(limit=100)
    with pytest.raises(ValueError, match="many"):
        query_of({"from": "many"})


def test_rows_have_identity_texts_and_tones(tmp_path: Path) -> None:
    page = views.partition_page(screen_on(tmp_path).snapshot, TableQuery(limit=2))

    answer = answer_of(page)

    assert (answer["count"], answer["words"], answer["is_problem"]) == (12, "12 rows", False)
    assert [row["key"] for row in answer["rows"]] == ["topic-0-0", "topic-0-1"]
    first = row_of(page.rows[0], page.columns)
    assert first["path"] == "topics/topic-0/partitions/0"
    assert (first["status"], first["status__tone"]) == ("✔ ok", "fine")
    assert first["leader"] == "★ 101"


def test_counts_tell_how_many_match_and_what_is_wrong(tmp_path: Path) -> None:
    snapshot = screen_on(tmp_path).snapshot

    some = views.partition_page(snapshot, TableQuery(filter="topic-1"))
    assert count_words(some) == "4 of 12 rows"
    wrong = answer_of(views.partition_page(snapshot, TableQuery(filter="lga>1")))
    assert wrong["is_problem"]
    assert "did you mean 'lag'" in wrong["words"]
