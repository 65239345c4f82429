"""Users who log in by SCRAM are altered as Kafka's ScramControlManager alters them."""

import pytest

from broker.controller.decision import Accepted, Rejected
from broker.controller.errors import (
    ControllerError,
    DuplicateResourceError,
    ResourceNotFoundError,
    UnacceptableCredentialError,
    UnsupportedMechanismError,
)
from broker.controller.security.scram_control import (
    ScramChange,
    ScramDeletion,
    ScramUpsertion,
    decide_alter_scram,
)
from broker.metadata.delta import ReplayError
from broker.metadata.image import MetadataImage
from broker.metadata.records import RemoveUserScramCredentialRecord
from broker.protocol.scram import ScramCredential, ScramMechanism
from tests.unit.broker.controller.images import apply, cluster

SHA_256, SHA_512 = ScramMechanism


def upsertion(name: str, mechanism: int = 1, iterations: int = 4_096) -> ScramUpsertion:
    return ScramUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"salt",
        salted_password=b"salted",
    )


def decided(
    image: MetadataImage, *changes: ScramChange
) -> tuple[MetadataImage, dict[str, type[ControllerError] | None]]:
    decision = decide_alter_scram(changes, image)
    told = {
        name: type(it.error) if isinstance(it, Rejected) else None
        for name, it in decision.response.items()
    }
    return apply(image, [*decision.records]), told


def test_users_come_change_and_go() -> None:
    image, told = decided(cluster(1), upsertion("alice"), upsertion("bob", 2, 8_192))
    assert told == {"alice": None, "bob": None}
    expected = ScramCredential.of(SHA_512, b"salted", salt=b"salt", iterations=8_192)
    assert image.scram[SHA_512, "bob"] == expected
    image, _ = decided(image, upsertion("alice", 2))
    image, _ = decided(image, ScramDeletion(name="alice", mechanism=1))
    assert set(image.scram) == {(SHA_512, "alice"), (SHA_512, "bob")}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (upsertion(""), UnacceptableCredentialError),
        (upsertion("a", 0), UnsupportedMechanismError),
        (upsertion("a", 3), UnsupportedMechanismError),
        (upsertion("a", -1), UnsupportedMechanismError),
        (upsertion("a", 1, 4_095), UnacceptableCredentialError),
        (upsertion("a", 2, 16_385), UnacceptableCredentialError),
        (ScramDeletion(name="a", mechanism=1), ResourceNotFoundError),
        (ScramDeletion(name="a", mechanism=3), UnsupportedMechanismError),
        (ScramDeletion(name="", mechanism=1), UnacceptableCredentialError),
    ],
)
def test_what_cannot_be_is_refused_beside_what_can(
    change: ScramChange, error: type[ControllerError]
) -> None:
    image, told = decided(cluster(1), change, upsertion("bob"))
    assert told == {change.name: error, "bob": None}
    assert set(image.scram) == {(SHA_256, "bob")}


def test_of_a_user_named_twice_nothing_is_altered() -> None:
    before, _ = decided(cluster(1), upsertion("alice"))
    deletion = ScramDeletion(name="alice", mechanism=1)
    for changes in (
        (deletion, deletion),
        (deletion, upsertion("alice", 2)),
        (upsertion("alice", 1, 8_192), upsertion("alice", 2)),
        (upsertion("alice"), upsertion("alice"), upsertion("alice")),
    ):
        image, told = decided(before, *changes)
        assert told == {"alice": DuplicateResourceError}
        assert image.scram == before.scram


def test_a_removal_of_nobody_is_not_replayed() -> None:
    with pytest.raises(ReplayError):
        apply(cluster(1), [RemoveUserScramCredentialRecord(name="alice", mechanism=1)])


def test_an_accepted_change_tells_nothing() -> None:
    assert decide_alter_scram([upsertion("a")], cluster(1)).response == {"a": Accepted(None)}
