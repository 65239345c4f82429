"""What may be changed is judged in one place, for all faces."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from control.kafka.errors import NoBusError
from control.model.fleet import WatchedCluster
from control.operations.errors import NotConfirmedError, ProtectedTopicError, ReadOnlyError
from control.operations.guard import BRAKES, check_configs, check_topic, topic_doubt
from control.operations.intent import intent
from control.operations.operator import Operator
from control.operations.performing import PERFORMED, perform, word_to_type
from control.operations.registry import FORMS, form_named
from control.operations.rolling_back import roll_back
from control.planner.by_hand import NOTHING

PROD = WatchedCluster(name="prod", bootstrap="127.0.0.1:1", is_production=True)
VALUES = {
    "topic": "orders",
    "partitions": "5",
    "configs": "retention.ms=1000",
    "group": "billing",
    "to": "latest",
}
WRONG = ("", "PROD", "orders", "billing", "prod ", "127.0.0.1:1")


def _changes() -> dict[str, Callable[[Operator, str], Any]]:
    """Every way to change something, by name."""
    ways: dict[str, Callable[[Operator, str], Any]] = {
        form: lambda it, typed, form=form: perform(it, form, VALUES, typed=typed)  # type: ignore[misc]
        for form in sorted(PERFORMED)
    }
    ways["produce"] = lambda it, typed: it.produce(VALUES, typed=typed)
    ways["reassign"] = lambda it, typed: it.reassign(NOTHING, {}, typed=typed)
    ways["rollback"] = lambda it, typed: roll_back(it, "mv-1", typed=typed)
    for action in ("pause", "resume", "cancel", "cancel_after_wave", "throttle"):
        ways[action] = lambda it, typed, action=action: it.control(  # type: ignore[misc]
            action, "mv-1", rate="1MiB", typed=typed
        )
    return ways


CHANGES = _changes()


async def _done(way: Callable[[Operator, str], Any], operator: Operator, typed: str) -> None:
    result = way(operator, typed)
    if inspect.isawaitable(result):
        await result


def test_every_operation_is_among_them() -> None:
    assert {form.name for form in FORMS} <= CHANGES.keys()
    takes_word = {
        name
        for name, method in inspect.getmembers(Operator, inspect.isfunction)
        if "typed" in inspect.signature(method).parameters
    }
    assert takes_word == {*PERFORMED, "produce", "reassign", "control"}


@pytest.mark.parametrize("change", sorted(CHANGES.keys() - BRAKES))
async def test_production_is_changed_by_its_name_alone(change: str) -> None:
    async with Operator(PROD, bus=None, who="me") as operator:
        for typed in WRONG:
            with pytest.raises(NotConfirmedError, match="was not done"):
                await _done(CHANGES[change], operator, typed)


@pytest.mark.parametrize("change", sorted(BRAKES))
async def test_a_reassignment_of_production_is_stopped_without_its_name(change: str) -> None:
    async with Operator(PROD, bus=None, who="me") as operator:
        with pytest.raises(NoBusError):  # so far it comes: nothing has asked for a word
            await _done(CHANGES[change], operator, "")


@pytest.mark.parametrize("change", CHANGES)
async def test_what_is_only_read_is_never_changed(change: str) -> None:
    watched = replace(PROD, is_read_only=True)
    async with Operator(watched, bus=None, who="me") as operator:
        for typed in ("prod", "prod/orders", ""):
            with pytest.raises(ReadOnlyError):
                await _done(CHANGES[change], operator, typed)


def test_the_word_is_the_clusters_name_and_what_is_destroyed() -> None:
    calm = replace(PROD, is_production=False)
    words = {
        form.name: (word_to_type(PROD, form, VALUES), word_to_type(calm, form, VALUES))
        for form in FORMS
    }
    assert words["create_topic"] == words["produce"] == words["reassign"] == ("prod", "")
    assert words["delete_topic"] == ("prod/orders", "orders")
    assert words["reset_offsets"] == ("prod/billing", "billing")


@pytest.mark.parametrize(
    "topic",
    ["__consumer_offsets", "__transaction_state", "__partiscope_metrics", "__partiscope_events"],
)
async def test_topics_of_kafka_and_of_our_own_are_left_alone(topic: str) -> None:
    """Told when the form is previewed, before a name is typed; and refused when it is done."""
    values = {**VALUES, "topic": topic, "configs": "cleanup.policy=delete"}
    calm = replace(PROD, is_production=False)
    async with Operator(calm, bus=None, who="me") as operator:
        for form in ("delete_topic", "add_partitions", "configure_topic", "create_topic"):
            with pytest.raises(ProtectedTopicError, match=f"{topic} was left as it is"):
                await intent(operator, form, values)
            word = word_to_type(calm, form_named(form), values)
            with pytest.raises(ProtectedTopicError):
                await perform(operator, form, values, typed=word)
        with pytest.raises(ProtectedTopicError):
            operator.produce(values)


def test_what_harms_no_owner_may_be_done_and_is_told() -> None:
    check_configs("__consumer_offsets", {"min.insync.replicas": "2"})
    assert "the committed offsets of every group" in topic_doubt("__consumer_offsets")
    check_topic("delete", "_schemas")
    assert "another program's own" in topic_doubt("_schemas")
    assert topic_doubt("orders") == ""
    check_configs("orders", {"cleanup.policy": "compact"})
