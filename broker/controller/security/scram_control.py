"""Users who log in by SCRAM, altered (KIP-554, Kafka's ScramControlManager)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from broker.controller.decision import Accepted, Decision, Rejected, Verdict
from broker.controller.errors import (
    ControllerError,
    DuplicateResourceError,
    ResourceNotFoundError,
    UnacceptableCredentialError,
    UnsupportedMechanismError,
)
from broker.metadata.image import MetadataImage
from broker.metadata.records import (
    MetadataRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from broker.protocol.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    ScramCredential,
    ScramMechanism,
)

_KNOWN: Final = frozenset(it.value for it in ScramMechanism)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramDeletion:
    """One credential of a user that goes."""

    name: str
    mechanism: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramUpsertion:
    """One credential of a user that is set."""

    name: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


ScramChange = ScramDeletion | ScramUpsertion
ScramVerdicts = dict[str, Verdict[None]]


def decide_alter_scram(
    changes: Sequence[ScramChange], image: MetadataImage
) -> Decision[ScramVerdicts]:
    """Alter one credential of each user; a user who is named twice keeps all."""
    records: dict[str, MetadataRecord] = {}
    verdicts: ScramVerdicts = {}
    for change in changes:
        before = verdicts.get(change.name)
        if isinstance(before, Rejected):
            continue
        try:
            if before is not None:
                del records[change.name]
                raise DuplicateResourceError(
                    "A user credential cannot be altered twice in the same request"
                )
            records[change.name] = _record(change, image)
            verdicts[change.name] = Accepted(None)
        except ControllerError as error:
            verdicts[change.name] = Rejected(error)
    return Decision(tuple(records.values()), verdicts)


def _record(change: ScramChange, image: MetadataImage) -> MetadataRecord:
    if not change.name:
        raise UnacceptableCredentialError("Username must not be empty")
    if change.mechanism not in _KNOWN:
        raise UnsupportedMechanismError("Unknown SCRAM mechanism")
    mechanism = ScramMechanism(change.mechanism)
    if isinstance(change, ScramDeletion):
        if (mechanism, change.name) not in image.scram:
            raise ResourceNotFoundError("Attempt to delete a user credential that does not exist")
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=mechanism)
    if change.iterations < ITERATIONS_MIN:
        raise UnacceptableCredentialError("Too few iterations")
    if change.iterations > ITERATIONS_MAX:
        raise UnacceptableCredentialError("Too many iterations")
    credential = ScramCredential.of(
        mechanism, change.salted_password, salt=change.salt, iterations=change.iterations
    )
    return scram_record(change.name, mechanism, credential)


def scram_record(
    name: str, mechanism: ScramMechanism, credential: ScramCredential
) -> UserScramCredentialRecord:
    """The record that sets a credential."""
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )
