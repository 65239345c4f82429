"""A checked plan as page, terminal and command line show it: figures, balance, checks."""

import os
from typing import Final

from broker.named_file import NamedFileError, decoded, read_text
from control.model.ids import TopicPartition
from control.move.check import Check, Verdict
from control.move.throttle import THROTTLE_AUTO
from control.operations.errors import InvalidInputError
from control.operations.operation_session import OperationSession
from control.operations.reassignment.plan_check import PlanCheck, check_plan
from control.views.format import count_text
from control.views.tables.cells import bytes_cell, count_cell
from control.views.tables.rows import Cell
from planner.reassignment_json import ReassignmentJsonError, parse_reassignment

FIGURES: Final = ("what", "plan", "least", "above")
_EMPTY: Final = Cell(None, "")
BALANCES: Final = ("balance", "min now", "max now", "min after", "max after")
CHARACTERS_MAX: Final = 20_000_000
"""Of a pasted plan: 200,000 partitions with three replicas each."""
VERDICTS: Final = {
    Verdict.OK: "passes",
    Verdict.WARN: "passes with warnings",
    Verdict.FAIL: "fails",
}


def plan_text(typed: str) -> str:
    """Returns what was pasted; of a single line that is no JSON the text of that file.

    :raises InvalidInputError: the file cannot be read.
    """
    line = typed.strip()
    if not line or line.startswith("{") or "\n" in line:
        return typed
    try:
        return read_text(os.path.expanduser(line), "file")
    except NamedFileError as error:
        raise InvalidInputError({"plan": str(error)}) from error


def uploaded_text(data: bytes, name: str) -> str:
    """Text of a plan file that a browser has read.

    :raises InvalidInputError: it is not UTF-8.
    """
    try:
        return decoded(data, name, "file")
    except NamedFileError as error:
        raise InvalidInputError({"plan": str(error)}) from error


def parsed(text: str) -> dict[TopicPartition, tuple[int, ...]]:
    """The targets of Kafka's reassignment JSON, or of what its tool prints with --generate.

    :raises InvalidInputError: it is none, or longer than ``CHARACTERS_MAX``.
    """
    if not text.strip():
        raise InvalidInputError({"plan": "paste Kafka's reassignment JSON, or name a file with it"})
    if len(text) > CHARACTERS_MAX:
        words = f"longer than {count_text(CHARACTERS_MAX)} characters: check it by command"
        raise InvalidInputError({"plan": words})
    try:
        return parse_reassignment(text)
    except ReassignmentJsonError as error:
        raise InvalidInputError({"plan": str(error)}) from error


async def checked(session: OperationSession, text: str) -> PlanCheck:
    """Judge a plan of any tool, as `partiscope check` does; nothing is changed.

    :raises InvalidInputError: it is no plan, or names a partition that does not exist.
    :raises KafkaPortError: the cluster could not be read.
    """
    targets = parsed(text)
    return await check_plan(session.admin, targets, throttle=THROTTLE_AUTO, waste_percent_max=100.0)


def worst_first(found: PlanCheck) -> list[Check]:
    """Its checks: those that fail, then warnings."""
    order = (Verdict.FAIL, Verdict.WARN, Verdict.OK)
    return sorted(found.checks, key=lambda check: order.index(check.verdict))


def figure_rows(found: PlanCheck) -> list[tuple[str, *tuple[Cell, ...]]]:
    """A row for each of ``FIGURES``: what moves, and the least for the same balance."""
    proposal, judged = found.proposal, found.judged
    return [
        ("partitions", count_cell(len(proposal.changes)), _EMPTY, _EMPTY),
        ("replicas moved", count_cell(proposal.moved_replicas),
         count_cell(judged.lower_bound_replicas), count_cell(found.wasted_replicas)),
        ("bytes moved", bytes_cell(proposal.moved_bytes), bytes_cell(judged.lower_bound_bytes),
         bytes_cell(found.wasted_bytes)),
        ("new leaders", count_cell(proposal.moved_leaders), _EMPTY, _EMPTY),
    ]  # fmt: skip


def balance_rows(found: PlanCheck) -> list[tuple[str, *tuple[Cell, ...]]]:
    """A row for each of ``BALANCES``: the brokers with least and most, now and after it."""
    now, then = found.balance_before, found.judged.balance
    spreads = (
        ("replicas", now.replicas, then.replicas, count_cell),
        ("leaders", now.leaders, then.leaders, count_cell),
        ("bytes", now.bytes, then.bytes, bytes_cell),
    )
    return [
        (name, shown(a.min), shown(a.max), shown(b.min), shown(b.max))
        for name, a, b, shown in spreads
    ]
