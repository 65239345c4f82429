"""Findings of one kind about several brokers, told as one with the brokers under it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from control.model.finding import Finding, Operation, sorted_findings
from control.views.format import phrase

TOLD_MAX: Final = 3
"""Reasons of so many brokers are told; the others are named."""
NAMED_MAX: Final = 8
_BROKERS: Final = "brokers/"


def by_kind(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Findings whose kind stands for one broker only stay as they are."""
    groups: dict[str, list[Finding]] = {}
    for item in findings:
        groups.setdefault(item.kind if item.subject.startswith(_BROKERS) else item.id, []).append(
            item
        )
    for some in groups.values():
        brokers = dict.fromkeys(it.subject.removeprefix(_BROKERS) for it in some)
        if len(brokers) > 1:
            yield _as_one(sorted_findings(some), [*brokers])
        else:
            yield from some


def _as_one(parts: Sequence[Finding], brokers: Sequence[str]) -> Finding:
    """The worst one speaks for all; dates and severities are those of the oldest and the worst."""
    worst = parts[0]
    titles = {phrase(it.title, it.facts) for it in parts}
    ids = sorted(brokers, key=lambda it: (len(it), it))
    named = ", ".join(ids[:NAMED_MAX]) + (", …" if len(ids) > NAMED_MAX else "")
    dates = [it.since_ms for it in parts if it.since_ms is not None]
    return replace(
        worst,
        subject="brokers",
        label=f"brokers {named}",
        title="{title}" if len(titles) == 1 else "{title} at worst",
        reason="{what}",
        given=(("relieve_brokers", ",".join(ids)),)
        if worst.operation is Operation.REASSIGN
        else (),
        since_ms=min(dates, default=None),
        facts={
            "title": phrase(worst.title, worst.facts),
            "what": _reasons(parts),
            "count": len(ids),
        },
        is_only_one=True,
        consequences=tuple(under for it in parts for under in it.consequences),
        parts=tuple(parts),
    )


def _reasons(parts: Sequence[Finding]) -> str:
    told = [f"{it.label}: {phrase(it.reason, it.facts)}" for it in parts[:TOLD_MAX]]
    left = len(parts) - len(told)
    return " ".join([_capital(it) for it in told] + ([f"{left} more likewise."] if left else []))


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
