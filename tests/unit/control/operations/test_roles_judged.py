"""The session judges the role of who acts, before the cluster is asked and when it is confirmed."""

from dataclasses import replace
from typing import Final

import pytest

from control.access.login import Login, acting_as
from control.access.roles import ADMIN, EVERYWHERE, OPERATOR, VIEWER, Role
from control.operations.catalogue import MOVE_OPERATIONS, OPERATIONS
from control.operations.catalogue.groups.reset_offsets import ResetOffsets
from control.operations.catalogue.operation import Change, Effect, Operation
from control.operations.catalogue.several import several_of
from control.operations.catalogue.topics.delete_topic import DeleteTopic
from control.operations.catalogue.topics.elect_leaders import ElectLeaders
from control.operations.errors import NoRightError, PreviewGoneError
from control.operations.operation_session import OperationSession
from control.operations.role_check import check_role_on_topics
from tests.unit.control.operations.previews import previewed
from tests.unit.control.operations.test_operation_session import CALM, _asked, name_of

EVERY: Final = (*OPERATIONS, *MOVE_OPERATIONS)


def login(role: Role, name: str = "alice") -> Login:
    """Of this role on all clusters."""
    return Login(name=name, roles={EVERYWHERE: role})


def by(name: str, asked: Operation) -> object:
    """A preview that somebody of this name has made."""
    return replace(previewed(asked, CALM), by=name)


@pytest.mark.parametrize("operation", EVERY, ids=name_of)
@pytest.mark.parametrize("role", [VIEWER, OPERATOR], ids=lambda role: role.name)
async def test_an_operation_outside_the_role_is_neither_previewed_nor_done(
    operation: type[Operation], role: Role
) -> None:
    if operation.FORM.name in role.operations:
        pytest.skip("it is in the role")
    async with OperationSession(CALM, bus=None) as session:
        with acting_as(login(role)):
            with pytest.raises(NoRightError, match="alice has the role"):
                await session.preview(_asked(operation))
            asked = _asked(operation)
            confirmed = replace(previewed(asked, CALM), by="alice")
            with pytest.raises(NoRightError):
                await session.perform(confirmed, typed=asked.thing)
            with pytest.raises(NoRightError):
                session.require(asked, typed=asked.thing)


async def test_a_role_that_is_lost_after_the_preview_refuses_the_confirmation() -> None:
    asked = replace(previewed(ElectLeaders(), CALM), by="alice")
    async with OperationSession(CALM, bus=None) as session:
        session._previews.keep(asked)
        with acting_as(login(VIEWER)), pytest.raises(NoRightError):
            await session.perform(session.kept_preview(asked.name))


async def test_nobody_confirms_the_preview_of_another() -> None:
    asked = replace(previewed(ElectLeaders(), CALM), by="alice")
    async with OperationSession(CALM, bus=None) as session:
        session._previews.keep(asked)
        with acting_as(login(ADMIN, "bob")):
            with pytest.raises(PreviewGoneError):
                session.kept_preview(asked.name)
            with pytest.raises(PreviewGoneError):
                await session.perform(asked)
        with acting_as(login(ADMIN)):
            assert session.kept_preview(asked.name) is asked


@pytest.mark.parametrize(
    ("topics", "is_allowed"), [(["payments-eu"], True), (["payments-eu", "orders"], False)]
)
def test_each_of_several_rows_is_judged_by_its_topic(topics: list[str], is_allowed: bool) -> None:
    form = DeleteTopic.FORM
    several = several_of(form, topics, {})
    effect = Effect(command=several, changes=(Change("x", 1, 2),))
    role = Role(name="payments", operations=frozenset({form.name}), topics=("payments-*",))
    with acting_as(login(role)):
        if is_allowed:
            check_role_on_topics(CALM, effect)
            return
        with pytest.raises(NoRightError, match="not orders"):
            check_role_on_topics(CALM, effect)


def test_what_names_no_topic_is_not_for_a_role_of_topics() -> None:
    role = Role(name="few", operations=frozenset({"reset_offsets"}), topics=("a",))
    every = ResetOffsets.of(
        ResetOffsets.FORM.parse({"group": "billing", "topic": "", "to": "latest"})
    )
    effect = Effect(command=every, changes=(Change("x", 1, 2),))
    with acting_as(login(role)), pytest.raises(NoRightError, match="for topics a alone"):
        check_role_on_topics(CALM, effect)


async def test_records_are_read_by_who_has_the_right() -> None:
    async with OperationSession(CALM, bus=None) as session:
        with acting_as(login(VIEWER)), pytest.raises(NoRightError, match="reading orders"):
            session.records("orders")
        with acting_as(login(OPERATOR)):
            assert session.records("orders") == session.settings
        assert session.records("orders") == session.settings
