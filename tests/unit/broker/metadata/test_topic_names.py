import pytest

from broker.metadata.topic_names import problem_of_topic_name


@pytest.mark.parametrize(
    ("name", "legal"),
    [("a", True), ("A.b_c-9", True), ("", False), (".", False), ("..", False), ("a b", False)],
)
def test_topic_names(name: str, legal: bool) -> None:
    assert (not problem_of_topic_name(name)) is legal
    assert problem_of_topic_name(name * 250)
