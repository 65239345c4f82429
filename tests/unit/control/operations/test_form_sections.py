"""Forms in sections: a chooser decides which fields belong to a request."""

import pytest

from control.operations.catalogue import FORMS, form_named
from control.operations.catalogue.forms import OperationForm
from control.operations.catalogue.moves.reassign import REASSIGN, Task, plan_request
from control.operations.errors import InvalidInputError
from planner.goals import Goal


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_sections_have_every_field_once_in_the_form_order(form: OperationForm) -> None:
    titles = [title for title, _ in form.sections]
    assert [field for _, fields in form.sections for field in fields] == list(form.fields)
    assert len(set(titles)) == len(titles) or (REASSIGN.name == form.name and titles[-1] == "")


@pytest.mark.parametrize(
    ("task", "wanted"),
    [
        (Task.REBALANCE, {"goal"}),
        (Task.DECOMMISSION, {"goal", "remove_brokers"}),
        (Task.ADD_BROKERS, {"add_brokers"}),
        (Task.REPLICATION, {"replication_factor"}),
        (Task.RELIEVE, {"relieve_brokers"}),
        (Task.BY_HAND, {"partition", "replicas", "by_hand", "leader_order"}),
    ],
)
def test_a_goal_shows_only_its_own_fields(task: Task, wanted: set[str]) -> None:
    own = {field.name for field in REASSIGN.fields if 0 < len(field.only_for) < 3}
    shown = {field.name for field in REASSIGN.shown({"task": task})}
    assert shown & own == wanted
    assert {"task", "topics", "throttle", "reason"} <= shown


@pytest.mark.parametrize(
    ("given", "task", "goal"),
    [
        ({}, Task.REBALANCE, Goal.BALANCE),
        ({"goal": "leaders"}, Task.REBALANCE, Goal.LEADERS),
        ({"remove_brokers": "103"}, Task.DECOMMISSION, Goal.BALANCE),
        ({"goal": "racks", "remove_brokers": "103"}, Task.DECOMMISSION, Goal.RACKS),
        ({"goal": "relieve", "relieve_brokers": "103"}, Task.RELIEVE, Goal.RELIEVE),
        ({"goal": "replication", "replication_factor": "3"}, Task.REPLICATION, Goal.REPLICATION),
        ({"topics": "orders", "partition": "3"}, Task.BY_HAND, Goal.BALANCE),
        ({"task": "add_brokers"}, Task.ADD_BROKERS, Goal.MINIMAL),
        ({"add_brokers": "104"}, Task.ADD_BROKERS, Goal.MINIMAL),
    ],
)
def test_links_without_a_task_imply_it(given: dict[str, str], task: Task, goal: Goal) -> None:
    fields = REASSIGN.parse(given)
    assert fields["task"] == task
    assert plan_request(fields).goal is goal
    assert REASSIGN.defaults(given)["task"] == task


def test_fields_of_another_goal_do_not_count() -> None:
    left = {"task": "rebalance", "remove_brokers": "103", "replication_factor": "x"}
    assert plan_request(REASSIGN.parse(left)).remove_brokers == ()
    assert plan_request(REASSIGN.parse({"remove_brokers": "103"})).remove_brokers == (103,)


def test_the_brokers_to_add_can_be_named() -> None:
    given = {"task": "add_brokers", "add_brokers": "104, 105"}
    assert plan_request(REASSIGN.parse(given)).add_brokers == (104, 105)
    assert plan_request(REASSIGN.parse({"task": "add_brokers"})).add_brokers == ()


def test_a_goal_asks_for_what_it_needs() -> None:
    with pytest.raises(InvalidInputError) as error:
        REASSIGN.parse({"task": "decommission"})
    assert error.value.fields == {"remove_brokers": "is needed"}


def test_only_what_takes_something_away_is_destructive() -> None:
    destructive = {form.name for form in FORMS if form.is_destructive}
    assert destructive == {form.name for form in FORMS if form.name.startswith("delete")}


@pytest.mark.parametrize(
    ("name", "given", "first"),
    [
        ("reset_offsets", {"group": "billing"}, "to"),
        ("reset_offsets", {}, "group"),
        ("delete_records", {"topic": "orders"}, "before"),
        ("create_topic", {}, "topic"),
        ("drain", {"broker": "103"}, "reason"),
        ("delete_topic", {"topic": "orders"}, "reason"),
    ],
)
def test_a_hand_begins_where_the_view_gives_nothing(
    name: str, given: dict[str, str], first: str
) -> None:
    assert form_named(name).first_to_type(given) == first
