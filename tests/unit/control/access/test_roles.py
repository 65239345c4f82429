"""Roles judge operations, topics and records; what they refuse has a reason."""

import pytest

from control.access.login import Login, acting, acting_as, acting_who, use_login
from control.access.roles import (
    ADMIN,
    BUILT_IN,
    EVERY_OPERATION,
    EVERYWHERE,
    OPERATOR,
    VIEWER,
    Role,
)
from control.operations.catalogue import MOVE_OPERATIONS, OPERATIONS

ALICE = Login(name="alice", address="10.0.0.5", roles={EVERYWHERE: VIEWER, "test": OPERATOR})
PAYMENTS = Role(
    name="payments",
    operations=frozenset({"configure_topic", "reassign", "pause"}),
    topics=("payments-*", "ledger"),
    may_read_records=True,
)


def test_every_operation_of_the_catalogue_is_in_a_role() -> None:
    assert {it.FORM.name for it in (*OPERATIONS, *MOVE_OPERATIONS)} == EVERY_OPERATION


def test_admins_may_do_all_that_operators_may_and_viewers_nothing() -> None:
    assert VIEWER.operations < OPERATOR.operations < ADMIN.operations == EVERY_OPERATION
    reads = {name for name, role in BUILT_IN.items() if role.may_read_records}
    assert reads == {"operator", "admin"}
    taken_away = {"delete_topic", "delete_records", "delete_group", "delete_offsets"}
    assert not taken_away & OPERATOR.operations


@pytest.mark.parametrize("operation", sorted(EVERY_OPERATION))
def test_a_role_is_of_a_cluster(operation: str) -> None:
    is_refused = bool(ALICE.why_not("test", operation))
    assert is_refused == (operation not in OPERATOR.operations)
    assert "the role viewer on prod" in ALICE.why_not("prod", operation)
    assert operation in ALICE.refusals("prod")
    assert (operation in ALICE.refusals("test")) == is_refused


def test_a_login_without_a_role_may_do_nothing() -> None:
    nobody = Login(name="eve")
    assert nobody.refusals("prod").keys() == EVERY_OPERATION
    assert nobody.why_no_records("prod", "orders")


@pytest.mark.parametrize(
    ("operation", "topics", "is_allowed"),
    [
        ("configure_topic", {"payments-eu"}, True),
        ("configure_topic", {"ledger"}, True),
        ("configure_topic", {"ledger-2"}, False),
        ("reassign", {"payments-eu", "orders"}, False),
        ("reassign", None, False),
        ("delete_topic", {"payments-eu"}, False),
    ],
)
def test_a_role_of_topics_ends_at_them(
    operation: str, topics: set[str] | None, is_allowed: bool
) -> None:
    bob = Login(name="bob", roles={EVERYWHERE: PAYMENTS})
    assert (bob.why_not("", operation, topics) == "") is is_allowed


def test_a_brake_of_a_role_is_at_hand_for_every_topic() -> None:
    bob = Login(name="bob", roles={EVERYWHERE: PAYMENTS})
    assert not bob.why_not("", "pause", None, is_brake=True)
    assert bob.why_not("", "cancel", None, is_brake=True)


def test_records_are_a_right_of_their_own() -> None:
    bob = Login(name="bob", roles={EVERYWHERE: PAYMENTS})
    assert not bob.why_no_records("", "ledger")
    assert "not orders" in bob.why_no_records("", "orders")
    assert ALICE.why_no_records("prod", "orders")


def test_a_request_acts_for_its_own_login_and_no_other() -> None:
    assert acting() is None
    assert acting_who("me@host") == "me@host"
    with acting_as(ALICE):
        assert acting_who("me@host") == "alice (page, 10.0.0.5)"
        with acting_as(Login(name="bob", face="terminal")):
            assert acting_who("") == "bob (terminal)"
        assert acting() is ALICE
    use_login(lambda: ALICE)
    try:
        assert acting() is ALICE
    finally:
        use_login(lambda: None)
