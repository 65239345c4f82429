"""`partiscope topics` of a cluster that is partly down, refuses, or is asked for odd things."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from control.kafka.connection import apis, retry
from partiscope.cli.app import run
from tests.unit.control.kafka.scripted_cluster import (
    Asked,
    Closed,
    Frame,
    Partitions,
    Reply,
    ScriptedCluster,
)

WRONG_USE: Final = 2


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "BACKOFF_S", 0.0)


@pytest.fixture
def cluster() -> Iterator[ScriptedCluster]:
    """orders-1 is offline; broker 2 leads nothing."""
    orders: Partitions = {0: (1, 2), 1: ()}
    one: Partitions = {0: (1,)}
    topics = {"orders": orders, "__hidden": one, "\x1b[31mred": one}
    with ScriptedCluster(ids=(1, 2), topics=topics) as found:
        yield found


def config(name: str, value: str | None, source: int) -> dict[str, Any]:
    return {"name": name, "value": value, "read_only": False, "config_source": source,
            "is_sensitive": value is None, "synonyms": ()}  # fmt: skip


def configs(*entries: dict[str, Any], code: int = 0) -> dict[str, Any]:
    told = {"resource_type": 2, "resource_name": "orders", "configs": entries}
    return {"results": ({"error_code": code, "error_message": None, **told},)}


def ask(cluster: ScriptedCluster, *arguments: str) -> int:
    return run(["topics", *arguments, "--bootstrap", cluster.bootstrap])


def test_one_partition_offline_leaves_the_list_whole(
    cluster: ScriptedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(cluster, "list", "--json") == 0
    found = {each["topic"]: each for each in json.loads(capsys.readouterr().out)["topics"]}
    assert sorted(found) == ["\x1b[31mred", "orders"]
    assert [it["leader"] for it in found["orders"]["partitions"]] == [1, -1]
    assert found["orders"]["replication_factor"] == 2
    assert ask(cluster, "list", "--internal", "--json") == 0
    assert "__hidden" in capsys.readouterr().out
    assert ask(cluster, "list") == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_topic_is_described_with_what_differs_from_the_default(
    cluster: ScriptedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = (config("retention.ms", "5", 1), config("a.default", "x", 5),
               config("secret\x1b", None, 1))  # fmt: skip
    cluster.on(apis.DESCRIBE_CONFIGS, configs(*entries))
    assert ask(cluster, "describe", "orders", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["configs"] == {"retention.ms": "5", "secret\x1b": None}
    assert [it["partition"] for it in found["partitions"]] == [0, 1]
    assert ask(cluster, "describe", "orders") == 0
    shown = capsys.readouterr().out
    assert "retention.ms=5" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("code", [29, 40])
def test_a_topic_whose_configs_are_refused_is_told_with_the_code(
    cluster: ScriptedCluster, capsys: pytest.CaptureFixture[str], code: int
) -> None:
    cluster.on(apis.DESCRIBE_CONFIGS, configs(code=code))
    assert ask(cluster, "describe", "orders") != 0
    told = capsys.readouterr()
    assert "orders" in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize("reply", [Closed, Frame(b"\xff\xff\xff\xff"), "nothing"])
def test_answers_that_are_none_end_the_command_with_an_error(
    cluster: ScriptedCluster, capsys: pytest.CaptureFixture[str], reply: Any
) -> None:
    def nothing(asked: Asked) -> Reply:
        wants_all = asked.message.topics is None
        return cluster.metadata(asked) | ({} if wants_all else {"topics": ()})

    cluster.on(apis.METADATA, nothing if reply == "nothing" else reply)
    assert ask(cluster, "describe", "orders") != 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "Traceback" not in told.err


def test_a_topic_that_there_is_not_is_named(
    cluster: ScriptedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(cluster, "describe", "nowhere") != 0
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "quoted"),
    [
        (["alter", "orders"], "--partitions"),
        (["alter", "orders", "--config", "retention.ms"], "retention.ms"),
        (["alter", "orders", "--partitions", "0"], "--partitions"),
        (["alter", "orders", "--partitions", "1000001"], "--partitions"),
        (["alter", "orders", "--partitions", "²"], "--partitions"),
        (["create", "new", "--partitions", "1.5"], "--partitions"),
        (["create", "new", "--replication-factor", "32768"], "--replication-factor"),
        (["create", "new", "--replication-factor", "-2"], "--replication-factor"),
        (["create", "new", "--config", "=5"], "=5"),
        (["create", "new", "--config", "a=1", "--config", "a=2"], "a=2"),
        (["delete-records", "orders", "--before", "yesterday-ish"], "yesterday-ish"),
        (["delete-records", "orders", "--before", ""], "--before"),
        (["delete-records", "orders", "--before", "-5"], "-5"),
        (["delete-records", "orders", "--before", "9" * 5_000], "9999"),
        (["delete-records", "orders", "--before", "²"], "²"),
        (["delete-records", "orders", "--before", "10", "--partitions", "a"], "a"),
        (["delete-records", "orders", "--before", "10", "--partitions", "3-1"], "3-1"),
        (["delete-records", "orders", "--before", "10", "--partitions", "²"], "²"),
        (["delete-records", "orders", "--before", "10", "--partitions", "-1"], "-1"),
        (["delete-records", "orders", "--before", "10", "--partitions", "9" * 5_000], "9999"),
    ],
)
def test_what_cannot_be_meant_is_wrong_use_and_asks_nothing(
    cluster: ScriptedCluster, capsys: pytest.CaptureFixture[str], arguments: list[str], quoted: str
) -> None:
    assert ask(cluster, *arguments) == WRONG_USE
    told = capsys.readouterr()
    assert quoted in told.err
    assert "Traceback" not in told.err
    assert "4300" not in told.err
    changing = (apis.ALTER_CONFIGS, apis.CREATE_PARTITIONS, apis.CREATE_TOPICS, apis.DELETE_RECORDS)
    assert [len(cluster.requests(api)) for api in changing] == [0, 0, 0, 0]


@pytest.mark.parametrize("name", ["alter", "add-partitions", "configure"])
def test_only_trying_changes_nothing(cluster: ScriptedCluster, name: str) -> None:
    """The older names have no --dry-run: they are wrong use with it."""
    rest = {"alter": ["--partitions", "5"], "add-partitions": ["5"], "configure": ["a=b"]}[name]
    cluster.on(apis.DESCRIBE_CONFIGS, configs(config("retention.ms", "5", 1)))
    ask(cluster, name, "orders", *rest, "--dry-run")
    assert cluster.requests(apis.CREATE_PARTITIONS) == []
    assert cluster.requests(apis.ALTER_CONFIGS) == []
