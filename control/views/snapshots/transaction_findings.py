"""Findings about transactions that are open for long: who, since when, and what waits. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from control.model.finding import Fact, Finding, Operation
from control.model.status import Severity

if TYPE_CHECKING:  # a Kafka client comes with it, and screens start without one
    from control.kafka.admin.transactions import OpenTransaction

TOLD_MAX: Final = 20
"""So many transactions are findings of their own, the oldest; the others are counted."""
NAMES_MAX: Final = 5


def transaction_findings(found: Iterable[OpenTransaction], *, now_ms: int) -> Iterator[Finding]:
    """One finding a transaction, those that nobody ends first, then the oldest."""
    ordered = sorted(
        found, key=lambda it: (it.transactional_id is not None, it.since_ms or 0, it.label)
    )
    for item in ordered[:TOLD_MAX]:
        yield _hanging(item) if item.transactional_id is None else _open(item, now_ms)
    if others := ordered[TOLD_MAX:]:
        yield _others(others)


def _open(item: OpenTransaction, now_ms: int) -> Finding:
    is_ending = item.state.startswith("Prepare")
    return Finding(
        kind="transaction-open",
        severity=Severity.WARNING if item.held else Severity.NOTICE,
        subject=_subject(item),
        label=item.label,
        title="transaction open for {age:duration}",
        reason="Its coordinator has decided the outcome, and a leader does not take the marker: "
        "{held}."
        if is_ending
        else "Its producer (id {producer}) neither commits nor aborts: {held}. The coordinator "
        "aborts it {timeout:duration} after its start.",
        next_step="See that the leaders of its partitions answer"
        if is_ending
        else "Restart the producer with this `transactional.id`: that aborts the transaction",
        since_ms=item.since_ms,
        facts={
            **_facts(item),
            "age": max(now_ms - (item.since_ms or now_ms), 0),
            "timeout": item.timeout_ms,
        },
    )


def _hanging(item: OpenTransaction) -> Finding:
    first = item.held[0]
    where = f"--topic {first.key.topic} --partition {first.key.partition}"
    return Finding(
        kind="transaction-hanging",
        severity=Severity.WARNING,
        subject=_subject(item),
        label=item.label,
        title="hanging transaction",
        reason="No coordinator knows it, so that nobody ends it: {held}. Its partitions are not "
        "compacted from there on.",
        next_step=f"`kafka-transactions.sh --bootstrap-server HOST:PORT abort {where} "
        f"--start-offset {first.first_offset}` ends it",
        since_ms=item.since_ms,
        facts=_facts(item),
    )


def _others(others: Sequence[OpenTransaction]) -> Finding:
    """Those beyond ``TOLD_MAX``, so that a list that was cut says so."""
    return Finding(
        kind="transactions-open-more",
        severity=Severity.WARNING if any(it.held for it in others) else Severity.NOTICE,
        subject="topics",
        label="transactions",
        title="{count:count} more open for long",
        reason="The oldest are told one by one; the others hold up {records:plural:record}.",
        next_step="`kafka-transactions.sh --bootstrap-server HOST:PORT list` shows all",
        operation=Operation.OUTSIDE,
        is_only_one=True,
        since_ms=min((it.since_ms for it in others if it.since_ms), default=None),
        facts={"count": len(others), "records": sum(it.held_records for it in others)},
    )


def _subject(item: OpenTransaction) -> str:
    if not item.held:
        return "topics"
    key = item.held[0].key
    return f"topics/{key.topic}/partitions/{key.partition}"


def _facts(item: OpenTransaction) -> dict[str, Fact]:
    return {"producer": item.producer_id, "held": _held_words(item)}


def _held_words(item: OpenTransaction) -> str:
    """The partitions that wait, worst first: ``orders-3 from offset 17 on (1,204 records)``."""
    if not item.held:
        told = f"in {item.partitions:,} partitions" if item.partitions > 1 else "in its partition"
        return f"no record waits {told} yet"
    ordered = sorted(item.held, key=lambda it: (-it.records, it.key))
    named = [
        f"{it.key} from offset {it.offset:,} on ({it.records:,} "
        f"record{'' if it.records == 1 else 's'})"
        for it in ordered[:NAMES_MAX]
    ]
    more = len(ordered) - NAMES_MAX
    told = ", ".join(named) + (f" and {more:,} more" if more > 0 else "")
    return f"read_committed consumers wait at {told}"
