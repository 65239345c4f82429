"""Rolling back by hand: what is asked before, and doing it."""

from dataclasses import dataclass

from control.kafka.errors import KafkaPortError
from control.model.units import bytes_text, counted
from control.operations.catalogue.reassign import REASSIGN
from control.operations.errors import ConflictError
from control.operations.reassignment.planning import Preview
from control.operations.reassignment.preflight import failures
from control.operations.reassignment.preview import preview_way_back
from control.operations.reassignment.rollback_plan import WayBack
from control.operations.session import OperationSession
from control.operations.verdict import Check, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class WayBackQuestion:
    """One question; checks that did not pass, and whether they forbid it."""

    words: str
    doubts: tuple[Check, ...]
    is_refused: bool


async def ask_back(session: OperationSession, operation_id: str) -> WayBackQuestion:
    """Of an operation, also where the cluster does not answer: the way back then waits for it.

    :raises OperationError: nothing of it could go back, or others move it.
    :raises KafkaPortError: the bus does not answer.
    """
    way = await session.moves.way_back(operation_id)
    try:
        preview = await preview_way_back(session.planning, session.moves, way)
    except KafkaPortError as error:
        unknown = Check(name="pre-flight", verdict=Verdict.WARN, reason=f"not known: {error}")
        words = f"Roll {operation_id} back? What it would move is not known."
        return WayBackQuestion(words=words, doubts=(unknown,), is_refused=False)
    return question_of(way, preview)


async def roll_back(session: OperationSession, operation_id: str, *, typed: str = "") -> str:
    """Submit the way back; answers its id. What runs is not cancelled for one that would be
    refused, also if that has become so since it was asked.

    :raises OperationError: as `ask_back`, or pre-flight refuses it.
    :raises KafkaPortError: the bus does not answer.
    """
    session.require(REASSIGN.name, "rolling back", typed=typed)
    question = await ask_back(session, operation_id)
    if question.is_refused:
        raise ConflictError(f"{question.words} {failures(question.doubts)}")
    return await session.moves.rollback(operation_id)


def question_of(way: WayBack, preview: Preview) -> WayBackQuestion:
    """Of a way back as it would be now."""
    doubts = tuple(check for check in preview.checks if check.verdict is not Verdict.OK)
    words = f"Roll {way.undone} back? {goes_words(way, preview)}"
    if preview.is_refused:
        words = f"{way.undone} cannot be rolled back now."
    return WayBackQuestion(words=words, doubts=doubts, is_refused=preview.is_refused)


def goes_words(way: WayBack, preview: Preview) -> str:
    """How much goes back, how fast, for how long."""
    first = "It is cancelled first: what is in flight goes back. " if way.is_running else ""
    proposal = preview.proposal
    if not proposal.changes:
        rest = "Everything else" if first else "Everything"
        return f"{first}{rest} is where it was already: nothing moves."
    partitions = counted(len(proposal.changes), "partition")
    go = "goes where it was" if len(proposal.changes) == 1 else "go where they were"
    if not proposal.moved_replicas:
        return f"{first}{partitions} {go}: no data moves."
    replicas, size = counted(proposal.moved_replicas, "replica"), bytes_text(proposal.moved_bytes)
    pace = preview.pace_words
    return f"{first}{partitions} {go}, in the same waves: {replicas}, {size}, {pace}."
