"""Kafka's reassignment JSON."""

import json
from typing import Any, Final

import pytest

from control.model.ids import TopicPartition
from planner.reassignment_json import (
    ReassignmentJsonError,
    format_reassignment,
    parse_reassignment,
)
from tests.support.cases import case

KAFKAS = (
    '{"version":1,"partitions":['
    '{"topic":"foo1","partition":0,"replicas":[5,6],"log_dirs":["any","any"]},'
    '{"topic":"foo2","partition":1,"replicas":[2,3],"log_dirs":["any","any"]}]}'
)


def test_it_is_written_exactly_as_kafkas_tool_does() -> None:
    targets = {TopicPartition("foo2", 1): (2, 3), TopicPartition("foo1", 0): (5, 6)}
    assert format_reassignment(targets) == KAFKAS
    assert parse_reassignment(KAFKAS) == targets


def test_version_and_log_dirs_may_be_absent() -> None:
    text = '{"partitions":[{"topic":"t","partition":3,"replicas":[1]}]}'
    assert parse_reassignment(text) == {TopicPartition("t", 3): (1,)}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ('"replicas":[]', "replicas is empty"),
        ('"replicas":[1,1]', "names a broker twice"),
        ('"replicas":[1,2],"log_dirs":["any"]', "one directory per replica"),
        ('"replicas":[1],"log_dirs":["somewhere"]', "neither"),
        ('"replicas":["1"]', "list of broker ids"),
        ('"replicas":[1],"replicas":[2]', "'replicas' is given twice .*\\[2\\]"),
    ],
)
def test_what_kafkas_tool_refuses_is_refused(entry: str, words: str) -> None:
    text = f'{{"version":1,"partitions":[{{"topic":"t","partition":0,{entry}}}]}}'
    with pytest.raises(ReassignmentJsonError, match=words):
        parse_reassignment(text)


def test_a_directory_is_refused_rather_than_passed_over() -> None:
    """Kafka's tool would move the replica there."""
    text = '{"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":["/disk2"]}]}'
    with pytest.raises(ReassignmentJsonError, match=r"brokers choose the directory.*/disk2"):
        parse_reassignment(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no json", "not JSON"),
        ("[]", "must be an object"),
        ('{"version":2,"partitions":[]}', "Not supported version field value"),
        ('{"version":1,"partitions":[]}', "moves nothing"),
        (KAFKAS.replace("foo2", "foo1").replace('"partition":1', '"partition":0'), "listed twice"),
    ],
)
def test_whole_documents_are_checked(text: str, words: str) -> None:
    with pytest.raises(ReassignmentJsonError, match=words):
        parse_reassignment(text)


def test_all_wrong_entries_are_named_at_once() -> None:
    text = (
        '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,1],"log_dirs":["/d"]},'
        '{"topic":"","partition":-1,"replicas":[]},{"topic":"t","partition":1,"replicas":[2]},7]}'
    )
    with pytest.raises(ReassignmentJsonError) as refused:
        parse_reassignment(text)
    for words in (
        *("partitions[0].replicas [1, 1] names a broker twice", "partitions[0].log_dirs"),
        *("partitions[1].topic", "partitions[1].partition", "partitions[1].replicas is empty"),
        "partitions[3] must be an object",
    ):
        assert words in str(refused.value)
    assert refused.value.sound == {TopicPartition("t", 1): (2,)}
    many = ",".join('{"topic":"t","partition":0,"replicas":[]}' for _ in range(25))
    with pytest.raises(ReassignmentJsonError, match="and 5 more"):
        parse_reassignment(f'{{"partitions":[{many}]}}')


ALIKE: Final = 2**61 - 1
"""Python gives all of its multiples one place in a set: each is compared with each before it."""
MANY: Final = 100_000
"""Of these, each compared with each takes an hour."""
HOSTILE: Final[dict[str, tuple[Any, str]]] = {
    "partitions alike": ([("t", ALIKE * n, [1]) for n in range(MANY)], "partition must be"),
    "replicas alike": ([("t", 0, [ALIKE * n for n in range(MANY)])], "list of broker ids"),
    "an id beyond 32 bits": ([("t", 0, [2**31])], "list of broker ids"),
    "a broker many times": ([("t", 0, [1] * MANY)], "names a broker twice"),
    "an endless name": ([("t" * MANY, 0, [1])], "topic must be"),
    "a name that is a list": ([(["t"] * MANY, 0, [1])], "topic must be"),
    "a name that a terminal obeys": ([("\x1b[2J\u202e", 0, [1])], r"'\x1b[2J\u202e'"),
    "half a character": ([("\ud800", 0, [1])], r"'\ud800'"),
    "all wrong": ([("t" * 300, -1, "1")] * MANY, "more"),
}


def test_a_hostile_file_is_refused_at_once_in_few_words() -> None:
    texts = {
        name: (json.dumps({"partitions": [_entry(*it) for it in entries]}), words)
        for name, (entries, words) in HOSTILE.items()
    }
    keys = ",".join(f'"{n}":1' for n in range(MANY))
    texts["keys"] = f'{{{keys},"{MANY - 1}":2}}', f"'{MANY - 1}' is given twice"
    texts["an endless key"] = f'{{"{"k" * MANY}":1,"{"k" * MANY}":2}}', "given twice"
    texts["an endless path"] = KAFKAS.replace("any", "/" + "d" * MANY, 1), "log_dirs"
    texts["deep"] = KAFKAS.replace('"foo1"', "[" * 900 + "]" * 900), "topic must be"
    for name, (text, words) in texts.items():
        with case(name), pytest.raises(ReassignmentJsonError) as refused:
            parse_reassignment(text)
        with case(name, str(refused.value)[:200]):
            assert words in str(refused.value)
            assert str(refused.value).isprintable()
            assert len(str(refused.value)) < 10_000


def _entry(topic: Any, partition: Any, replicas: Any) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "replicas": replicas}
