"""Users who log in by SCRAM: the same answers of a broker of ours and of Kafka, case by case; and
Kafka's own tool, which sets them on ours."""

import itertools
from typing import Any, Final

import pytest

from broker.protocol import codec
from tests.support import wire
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import run_tool
from tests.support.settle import wait_until

NAMES: Final = itertools.count()
NONE, UNSUPPORTED, NOT_FOUND, DUPLICATE, UNACCEPTABLE = 0, 33, 91, 92, 93


@pytest.fixture
def address(bootstrap: str) -> str:
    """One broker of the cluster."""
    return bootstrap.split(",")[0]


def ask(address: str, api_key: int, **fields: Any) -> Any:
    return wire.ask(address, api_key, 0, codec.build_request(api_key, 0, **fields))


Change = tuple[int, int] | int
"""(mechanism, iterations) of what is set, or the mechanism of what is deleted."""


def alter(address: str, name: str, *changes: Change) -> list[tuple[str, int]]:
    """The verdict of one request about one user."""
    deletions = [{"name": name, "mechanism": it} for it in changes if isinstance(it, int)]
    upsertions = [
        {
            "name": name,
            "mechanism": it[0],
            "iterations": it[1],
            "salt": b"s",
            "salted_password": b"p",
        }
        for it in changes
        if not isinstance(it, int)
    ]
    answer = ask(address, 51, deletions=deletions, upsertions=upsertions)
    return [(it.user, int(it.error_code)) for it in answer.results]


def describe(address: str, *names: str) -> dict[str, tuple[int, set[tuple[int, int]]]]:
    users = [{"name": name} for name in names]
    answer = ask(address, 50, users=users)
    assert int(answer.error_code) == NONE
    return {
        it.user: (
            int(it.error_code),
            {(int(info.mechanism), int(info.iterations)) for info in it.credential_infos},
        )
        for it in answer.results
    }


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ([([(1, 4_096)], NONE)], {(1, 4_096)}),
        ([([(1, 16_384)], NONE)], {(1, 16_384)}),
        ([([(2, 4_096)], NONE)], {(2, 4_096)}),
        ([([(1, 4_095)], UNACCEPTABLE)], None),
        ([([(2, 4_095)], UNACCEPTABLE)], None),
        ([([(1, 16_385)], UNACCEPTABLE)], None),
        ([([(2, 0)], UNACCEPTABLE)], None),
        ([([(2, -1)], UNACCEPTABLE)], None),
        ([([(0, 4_096)], UNSUPPORTED)], None),
        ([([(3, 4_096)], UNSUPPORTED)], None),
        ([([(-1, 4_096)], UNSUPPORTED)], None),
        ([([1], NOT_FOUND)], None),
        ([([3], UNSUPPORTED)], None),
        ([([(1, 4_096)], NONE), ([(2, 8_192)], NONE)], {(1, 4_096), (2, 8_192)}),
        ([([(1, 4_096)], NONE), ([(1, 8_192)], NONE)], {(1, 8_192)}),
        ([([(1, 4_096)], NONE), ([1], NONE)], None),
        ([([(1, 4_096)], NONE), ([2], NOT_FOUND)], {(1, 4_096)}),
        ([([(1, 4_096)], NONE), ([1], NONE), ([1], NOT_FOUND)], None),
        ([([(1, 4_096), (2, 4_096)], DUPLICATE)], None),
        ([([(1, 4_096), (1, 4_096)], DUPLICATE)], None),
        ([([(1, 4_096), (1, 4_095)], DUPLICATE)], None),
        ([([(1, 4_095), (1, 4_096)], UNACCEPTABLE)], None),
        ([([(1, 4_096)], NONE), ([1, (1, 8_192)], DUPLICATE)], {(1, 4_096)}),
        ([([(1, 4_096)], NONE), ([1, 1], DUPLICATE)], {(1, 4_096)}),
        ([([(1, 4_096)], NONE), ([1, 2], DUPLICATE)], {(1, 4_096)}),
        ([([1, (1, 4_096)], NOT_FOUND)], None),
    ],
)
def test_altered_users(
    address: str, steps: list[tuple[list[Change], int]], left: set[tuple[int, int]] | None
) -> None:
    name = f"user-{next(NAMES)}"
    for changes, error in steps:
        assert alter(address, name, *changes) == [(name, error)], changes
    expected = (NONE, left) if left else (NOT_FOUND, set())
    wait_until(lambda: describe(address, name)[name] == expected, f"{name} is {expected}")


def test_a_user_without_a_name(address: str) -> None:
    assert alter(address, "", (1, 4_096)) == [("", UNACCEPTABLE)]


def test_users_who_are_described_twice_or_do_not_exist(address: str) -> None:
    name = f"user-{next(NAMES)}"
    alter(address, name, (1, 4_096))
    found = describe(address, name, name, "nobody", "")
    assert found == {name: (DUPLICATE, set()), "nobody": (NOT_FOUND, set()), "": (NOT_FOUND, set())}
    wait_until(lambda: name in describe(address), "all are described")


@pytest.mark.kafka_oracle
def test_kafkas_tool_sets_and_deletes_users_of_ours(our_cluster: LocalCluster) -> None:
    first, *_ = our_cluster.bootstrap.split(",")
    base = ("--bootstrap-server", our_cluster.bootstrap, "--alter", "--entity-type", "users")
    user = (*base, "--entity-name", "tooled")
    tool = "kafka.admin.ConfigCommand"
    done = run_tool(tool, *user, "--add-config", "SCRAM-SHA-512=[iterations=8192,password=x]")
    assert done.returncode == 0, done.stdout + done.stderr
    assert describe(first, "tooled")["tooled"] == (NONE, {(2, 8_192)})
    done = run_tool(tool, *user, "--delete-config", "SCRAM-SHA-512")
    assert done.returncode == 0, done.stdout + done.stderr
    assert describe(first, "tooled")["tooled"] == (NOT_FOUND, set())
