"""What may be done is judged by the session, for all faces."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from control.kafka.errors import NoBusError
from control.operations.catalogue import FORMS, OPERATIONS
from control.operations.catalogue.elect_leaders import ElectLeaders
from control.operations.catalogue.operation import Operation
from control.operations.confirmation import BRAKES
from control.operations.errors import (
    NoRightError,
    NotConfirmedError,
    PreviewGoneError,
    ProtectedTopicError,
    ReadOnlyError,
    StalePreviewError,
)
from control.operations.previews import PREVIEWS_MAX
from control.operations.protected_topics import check_configs, check_topic, doubts
from control.operations.reassignment.rollback import roll_back
from control.operations.session import FRESH_S, OperationSession
from control.planner.by_hand import NOTHING
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
}
WRONG = ("", "PROD", "orders", "billing", "prod ", "127.0.0.1:1")


def _asked(operation: type[Operation], **values: str) -> Operation:
    return operation.of(operation.FORM.parse({**VALUES, **values}))


def _changes() -> dict[str, Callable[[OperationSession, str], Any]]:
    """Every way to change something, by name."""
    ways: dict[str, Callable[[OperationSession, str], Any]] = {
        each.FORM.name: lambda it, typed, each=each: it.perform(  # type: ignore[misc]
            previewed(_asked(each)), typed=typed
        )
        for each in OPERATIONS
    }
    ways["reassign"] = lambda it, typed: it.reassign(NOTHING, {}, typed=typed)
    ways["rollback"] = lambda it, typed: roll_back(it, "mv-1", typed=typed)
    for action in ("pause", "resume", "cancel", "cancel_after_wave", "throttle"):
        ways[action] = lambda it, typed, action=action: it.control(  # type: ignore[misc]
            action, "mv-1", rate="1MiB", typed=typed
        )
    return ways


CHANGES = _changes()


async def _done(
    way: Callable[[OperationSession, str], Any], session: OperationSession, typed: str
) -> None:
    result = way(session, typed)
    if inspect.isawaitable(result):
        await result


def test_every_operation_is_among_them() -> None:
    assert {form.name for form in FORMS} <= CHANGES.keys()
    takes_word = {
        name
        for name, method in inspect.getmembers(OperationSession, inspect.isfunction)
        if "typed" in inspect.signature(method).parameters
    }
    assert takes_word == {"perform", "require", "reassign", "control"}


@pytest.mark.parametrize("change", sorted(BRAKES))
async def test_a_reassignment_of_production_is_stopped_without_its_name(change: str) -> None:
    async with OperationSession(PROD, bus=None, who="me") as session:
        with pytest.raises(NoBusError):  # so far it comes: nothing has asked for a word
            await _done(CHANGES[change], session, "")


@pytest.mark.parametrize("change", sorted(CHANGES.keys() - BRAKES))
async def test_production_is_changed_by_its_name_alone(change: str) -> None:
    async with OperationSession(PROD, bus=None, who="me") as session:
        for typed in WRONG:
            with pytest.raises(NotConfirmedError, match="was not done"):
                await _done(CHANGES[change], session, typed)


@pytest.mark.parametrize("change", CHANGES)
async def test_what_is_only_read_is_never_changed(change: str) -> None:
    watched = replace(PROD, is_read_only=True)
    async with OperationSession(watched, bus=None, who="me") as session:
        for typed in ("prod", "prod/orders", ""):
            with pytest.raises(ReadOnlyError):
                await _done(CHANGES[change], session, typed)


async def test_the_client_of_moves_refuses_by_itself() -> None:
    async with OperationSession(replace(PROD, is_read_only=True), bus=None) as session:
        moves = session.moves
        for act in (moves.cancel, moves.pause, moves.resume):
            with pytest.raises(ReadOnlyError):
                await act("mv-1")
        with pytest.raises(ReadOnlyError):
            await moves.submit_reassign(NOTHING, bootstrap="127.0.0.1:1")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda it: it.FORM.name)
async def test_a_right_that_lacks_refuses_preview_and_change(operation: type[Operation]) -> None:
    denied = {operation.FORM.name: "✖ not allowed here: it needs ALTER on the cluster"}
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
