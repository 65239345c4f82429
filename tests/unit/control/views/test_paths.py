"""View paths: what is printed is parsed back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.views.paths import PathError, ViewPath, parse_path, print_path


@pytest.mark.parametrize(
    ("text", "view", "params"),
    [
        ("", "overview", {}),
        ("/overview", "overview", {}),
        ("brokers/101", "broker", {"broker": "101"}),
        ("topics/orders/partitions/7", "partition", {"topic": "orders", "partition": "7"}),
        ("topics/o/partitions/7/segments", "segments", {"topic": "o", "partition": "7"}),
        ("groups/a%2Fb", "group", {"group": "a/b"}),
        ("produce", "produce_any", {}),
    ],
)
def test_paths_of_the_screens(text: str, view: str, params: dict[str, str]) -> None:
    path = parse_path(text)

    assert (path.view, dict(path.params)) == (view, params)
    assert parse_path(print_path(path)) == path


def test_a_query_stays_readable() -> None:
    path = parse_path("topics?q=lag>10000 broker:102&sort=-lag")

    assert path.query == {"q": "lag>10000 broker:102", "sort": "-lag"}
    assert print_path(path) == "topics?q=lag>10000%20broker:102&sort=-lag"


@pytest.mark.parametrize("text", ["nowhere", "brokers/x", "topics/a/partitions", "o" * 3000])
def test_what_is_no_path_is_said(text: str) -> None:
    with pytest.raises(PathError):
        parse_path(text)


@given(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=20),
    st.integers(0, 10**6),
    st.dictionaries(st.sampled_from(["q", "sort", "at"]), st.text(min_size=1, max_size=20)),
)
def test_any_name_survives(topic: str, partition: int, query: dict[str, str]) -> None:
    path = ViewPath(
        view="partition", params={"topic": topic, "partition": str(partition)}, query=query
    )

    assert parse_path(print_path(path)) == path
