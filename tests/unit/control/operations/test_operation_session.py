"""What may be done is judged by the session, for all faces."""

import ast
import inspect
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from control.access.login import Login, acting_as
from control.kafka.admin.groups import KafkaGroups
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.admin.offsets import KafkaOffsets
from control.kafka.admin.reassignments import KafkaReassignments
from control.kafka.errors import NoBusError
from control.operations.bus.client import OperationsClient
from control.operations.catalogue import MOVE_OPERATIONS, OPERATIONS
from control.operations.catalogue.operation import Operation
from control.operations.catalogue.topics.elect_leaders import ElectLeaders
from control.operations.errors import (
    NoRightError,
    NotConfirmedError,
    PreviewGoneError,
    ProtectedTopicError,
    ReadOnlyError,
    StalePreviewError,
)
from control.operations.operation_session import FRESH_S, OperationSession
from control.operations.previews import PREVIEWS_MAX
from control.operations.protected_topics import check_configs, check_topic, doubts
from tests.unit.control.operations.previews import PROD, previewed

CALM = replace(PROD, is_production=False)
VALUES = {
    "topic": "orders",
    "broker": "101",
    "partitions": "5",
    "configs": "retention.ms=1000",
    "group": "billing",
    "to": "latest",
    "before": "10",
    "move": "mv-1",
    "throttle": "1MiB",
    "silence": "si-3f9a21c4",
}
WRONG = ("", "PROD", "orders", "billing", "prod ", "127.0.0.1:1")


FACES: Final = ("dashboard", "tui", "partiscope")
EVERY: Final = (*OPERATIONS, *MOVE_OPERATIONS)
BRAKES: Final = tuple(it for it in EVERY if it.IS_BRAKE)
OTHERS: Final = tuple(it for it in EVERY if not it.IS_BRAKE)


def name_of(operation: type[Operation]) -> str:
    """For test ids."""
    return operation.FORM.name


def _asked(operation: type[Operation], **values: str) -> Operation:
    return operation.of(operation.FORM.parse({**VALUES, **values}))


def test_nothing_else_takes_a_word() -> None:
    takes_word = {
        name
        for name, method in inspect.getmembers(OperationSession, inspect.isfunction)
        if "typed" in inspect.signature(method).parameters
    }
    assert takes_word == {"perform", "require"}
    assert {it.FORM.name for it in BRAKES} == {"pause", "cancel", "cancel_after_wave"}


@pytest.mark.parametrize("operation", BRAKES, ids=name_of)
async def test_a_reassignment_of_production_is_stopped_without_its_name(
    operation: type[Operation],
) -> None:
    async with OperationSession(PROD, bus=None, who="me") as session:
        with pytest.raises(NoBusError):  # so far it comes: nothing has asked for a word
            await session.perform(previewed(_asked(operation)))


@pytest.mark.parametrize("operation", OTHERS, ids=name_of)
async def test_production_is_changed_by_its_name_alone(operation: type[Operation]) -> None:
    async with OperationSession(PROD, bus=None, who="me") as session:
        for typed in WRONG:
            with pytest.raises(NotConfirmedError, match="was not done"):
                await session.perform(previewed(_asked(operation)), typed=typed)


@pytest.mark.parametrize("operation", EVERY, ids=name_of)
async def test_what_is_only_read_is_never_changed(operation: type[Operation]) -> None:
    watched = replace(PROD, is_read_only=True)
    async with OperationSession(watched, bus=None, who="me") as session:
        with pytest.raises(ReadOnlyError):
            await session.preview(_asked(operation))
        for typed in ("prod", "prod/orders", ""):
            with pytest.raises(ReadOnlyError):
                await session.perform(previewed(_asked(operation)), typed=typed)


def test_read_only_is_judged_in_one_place() -> None:
    """``WatchedCluster.is_read_only`` decides about changes in one function of the operations."""
    root = Path(__file__).parents[4] / "control" / "operations"
    judges = {
        f"{path.relative_to(root)}: {ast.unparse(node)}"
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr == "is_read_only"
        and not ast.unparse(node).startswith("entry.")  # a broker config that only a restart sets
    }
    assert judges == {"permission.py: watched.is_read_only"}


@pytest.mark.parametrize("operation", EVERY, ids=name_of)
async def test_a_right_that_lacks_refuses_preview_and_change(operation: type[Operation]) -> None:
    denied = {operation.FORM.right: "✖ not allowed here: it needs ALTER on the cluster"}
    async with OperationSession(CALM, bus=None, denied=lambda: denied) as session:
        with pytest.raises(NoRightError, match="ALTER on the cluster"):
            await session.preview(_asked(operation))
        asked = _asked(operation)
        with pytest.raises(NoRightError):
            await session.perform(previewed(asked, CALM), typed=asked.thing)


async def test_a_preview_that_is_too_old_is_not_performed() -> None:
    async with OperationSession(CALM, bus=None) as session:
        with pytest.raises(StalePreviewError, match="preview is 15 m"):
            await session.perform(previewed(ElectLeaders(), CALM, age_s=FRESH_S + 1))


async def test_previews_are_kept_by_name_the_newest_of_them() -> None:
    async with OperationSession(CALM, bus=None) as session:
        for number in range(PREVIEWS_MAX + 1):
            session._previews.keep(replace(previewed(ElectLeaders()), name=str(number)))
        assert session.kept_preview(str(PREVIEWS_MAX)).name == str(PREVIEWS_MAX)
        with pytest.raises(PreviewGoneError):
            session.kept_preview("0")


async def test_a_program_that_previews_without_end_takes_nobody_elses_preview() -> None:
    async with OperationSession(CALM, bus=None) as session:
        keep = session._previews.keep
        for name in ("alice", "bob"):
            keep(replace(previewed(ElectLeaders()), name=f"of {name}", by=name))
        for number in range(3 * PREVIEWS_MAX):
            keep(replace(previewed(ElectLeaders()), name=str(number), by="token:nightly"))
        for name in ("alice", "bob"):
            with acting_as(Login(name=name)):
                assert session.kept_preview(f"of {name}").by == name
        with acting_as(Login(name="token:nightly")):
            assert session.kept_preview(str(3 * PREVIEWS_MAX - 1)).by == "token:nightly"
            with pytest.raises(PreviewGoneError):
                session.kept_preview(str(2 * PREVIEWS_MAX))
        assert len(session._previews._kept) == PREVIEWS_MAX


async def test_the_last_preview_is_kept_whoever_has_most() -> None:
    async with OperationSession(CALM, bus=None) as session:
        for number in range(PREVIEWS_MAX + 1):
            kept = replace(previewed(ElectLeaders()), name=str(number), by=f"user-{number}")
            session._previews.keep(kept)
        with acting_as(Login(name=f"user-{PREVIEWS_MAX}")):
            assert session.kept_preview(str(PREVIEWS_MAX)).name == str(PREVIEWS_MAX)
        with acting_as(Login(name="user-0")), pytest.raises(PreviewGoneError):
            session.kept_preview("0")


def test_the_word_is_the_clusters_name_and_what_is_destroyed() -> None:
    words = {
        each.FORM.name: (previewed(_asked(each)).word, previewed(_asked(each), CALM).word)
        for each in OPERATIONS
    }
    assert words["create_topic"] == words["elect"] == words["configure_topic"] == ("prod", "")
    assert words["delete_topic"] == words["delete_records"] == ("prod/orders", "orders")
    assert words["reset_offsets"] == words["delete_group"] == ("prod/billing", "billing")


@pytest.mark.parametrize(
    "topic",
    ["__consumer_offsets", "__transaction_state", "__partiscope_metrics", "__partiscope_events"],
)
async def test_topics_of_kafka_and_of_our_own_are_left_alone(topic: str) -> None:
    """Told when the operation is previewed, before a name is typed; and refused when it is done."""
    wanted = {
        "delete_topic", "delete_records", "add_partitions", "configure_topic", "create_topic",
        "produce",
    }  # fmt: skip
    async with OperationSession(CALM, bus=None, who="me") as session:
        for operation in OPERATIONS:
            if operation.FORM.name not in wanted:
                continue
            asked = _asked(operation, topic=topic, configs="cleanup.policy=delete")
            with pytest.raises(ProtectedTopicError, match=f"{topic} was left as it is"):
                await session.preview(asked)
            with pytest.raises(ProtectedTopicError):
                await session.perform(previewed(asked, CALM), typed=asked.thing)


def test_what_harms_no_owner_may_be_done_and_is_told() -> None:
    check_configs("__consumer_offsets", {"min.insync.replicas": "2"})
    assert "the committed offsets of every group" in doubts("__consumer_offsets")[0]
    check_topic("delete", "_schemas")
    assert "another program's own" in doubts("_schemas")[0]
    assert doubts("orders") == ()
    check_configs("orders", {"cleanup.policy": "compact"})


def test_faces_change_nothing_but_by_the_session() -> None:
    """They preview and perform; everything else that they call only reads."""
    clients = (KafkaAdmin, KafkaReassignments, KafkaGroups, KafkaOffsets, OperationsClient)
    changing = {
        name
        for client in clients
        for name in dir(client)
        if name.split("_")[0] in {"alter", "commit", "create", "delete", "elect", "submit"}
    } | {"control", "rollback"}
    assert {"alter_configs", "elect_leaders", "delete_group", "submit_reassign"} <= changing
    root = Path(__file__).parents[4]
    for path in (each for face in FACES for each in (root / face).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            where = f"{path.relative_to(root)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.ImportFrom):
                assert "OperationsClient" not in {each.name for each in node.names}, where
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert node.func.attr not in changing, where
            if isinstance(node, ast.Attribute) and node.attr in {"admin", "_context", "_client"}:
                assert not ast.unparse(node.value).endswith("session"), where
