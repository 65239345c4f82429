"""Alternatives of a plan that an operator chooses from, as a screen without a session keeps them.

A browser keeps the choices as plain data; the session keeps the plans that they name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Self

from control.operations.catalogue.moves.reassign import RUN_FIELDS
from control.operations.errors import NotReviewedError, PlanGoneError
from control.operations.operation_session import OperationSession
from control.views.plans import VIOLATIONS_MAX, Offer, alternative_words, offer_of, why_moved
from planner.by_hand import edits_text
from planner.optimizer import Alternative, Plan
from planner.planned_map import KeptPlans, plan_name
from planner.proposal import Proposal

PREFLIGHT_FIELDS: Final = tuple(name for name in RUN_FIELDS if name != "reason")
"""Fields of the form that pre-flight looks at."""
ENTRIES_MAX: Final = 200
"""Partitions of a plan that are written out to be edited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChoice:
    """One alternative, by the name under which the session keeps its plan."""

    name: str
    words: str
    violations: tuple[str, ...]
    """The first rules that it leaves broken."""
    offer: Offer
    why: tuple[str, ...]
    """Why each of its partitions moves, in their order."""
    base: str = ""
    """Name of the alternative that was edited by hand into this one; empty: it was planned."""
    entries: str = ""
    """Digest of what was typed to edit it."""

    @classmethod
    def of(cls, plan: Plan, item: Alternative) -> Self:
        """An alternative of a plan."""
        return cls(
            name=plan_name(item.proposal),
            words=alternative_words(item),
            violations=tuple(map(str, item.violations[:VIOLATIONS_MAX])),
            offer=offer_of(item),
            why=why_moved(plan, item),
        )

    def proposal(self, plans: KeptPlans) -> Proposal:
        """The changes that it stands for.

        Raises:
            PlanGoneError: many others were made since, or the process began anew.
        """
        kept = plans.find(self.name)
        if kept is None:
            raise PlanGoneError
        return kept.alternative.proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChoices:
    """The alternatives on offer and which is chosen; at most one of them was edited by hand."""

    items: tuple[PlanChoice, ...]
    at: int = 0

    @classmethod
    def of_plan(cls, plan: Plan) -> Self:
        """Those alternatives of a plan that move something."""
        return cls(items=tuple(PlanChoice.of(plan, item) for item in _moving(plan)))

    @classmethod
    def of_data(cls, items: Sequence[Mapping[str, Any]], at: int = 0) -> Self:
        """The choices that ``data`` wrote."""
        read = (
            PlanChoice(
                **{**item, "offer": Offer(**item["offer"]), "why": tuple(item["why"])}
                | {"violations": tuple(item["violations"])}
            )
            for item in items
        )
        return cls(items=tuple(read), at=at)

    @property
    def data(self) -> list[dict[str, Any]]:
        """The choices as JSON takes them."""
        return [asdict(item) for item in self.items]

    @property
    def chosen(self) -> PlanChoice:
        """The alternative that is looked at."""
        return self.items[self.at]

    @property
    def base(self) -> PlanChoice:
        """The alternative that edits by hand begin from: the chosen one, or what it was made of."""
        of = self.chosen.base
        return next((item for item in self.items if item.name == of), self.chosen)

    @property
    def planned(self) -> Self:
        """Without the one edited by hand; its base is chosen."""
        kept = tuple(item for item in self.items if not item.base)
        return replace(self, items=kept, at=kept.index(self.base))

    def entries_to_edit(self, plans: KeptPlans) -> str:
        """The text that a field for edits of the chosen alternative begins with: what was typed
        before, else its partitions; nothing for more than ENTRIES_MAX partitions.

        Raises:
            PlanGoneError: the plan is kept no longer.
        """
        kept = plans.find(self.chosen.name)
        if kept is None:
            raise PlanGoneError
        proposal = kept.alternative.proposal
        is_short = len(proposal.changes) <= ENTRIES_MAX
        return kept.entries or (edits_text(proposal) if is_short else "")

    def has_judged(self, entries: str) -> bool:
        """Whether these entries, and no others, made the alternative edited by hand."""
        made = [item.entries for item in self.items if item.base]
        return made == ([_digest(entries)] if entries.strip() else [])

    def with_edit(self, plan: Plan, base: str, entries: str) -> Self:
        """With the alternative that these entries make of ``base``, which is then chosen."""
        made = PlanChoice.of(plan, plan.alternatives[0])
        kept = tuple(item for item in self.items if not item.base)
        edited = replace(made, base=base, entries=_digest(entries))
        return replace(self, items=(*kept, edited), at=len(kept))

    def reviewed(self, values: Mapping[str, str]) -> dict[str, str]:
        """The subject of a review: the chosen alternative, and values of the form."""
        return {"name": self.chosen.name, **{name: values[name] for name in PREFLIGHT_FIELDS}}

    def require_reviewed(
        self, reviewed: Mapping[str, str], values: Mapping[str, str], entries: str
    ) -> None:
        """Compare what is confirmed with what was reviewed.

        Raises:
            NotReviewedError: something else was reviewed, or the entries are newer.
        """
        if not self.has_judged(entries):
            raise NotReviewedError(by_hand=True)
        if self.reviewed(values) != reviewed:
            raise NotReviewedError


async def edited(
    session: OperationSession, choices: PlanChoices, entries: str, values: Mapping[str, str]
) -> PlanChoices:
    """The choices with one more: the base with these partitions placed by hand. Without entries,
    the base itself.

    Raises:
        PlanGoneError: the base is kept no longer.
        InvalidInputError: an entry that cannot be.
    """
    if not entries.strip():
        return choices.planned
    for item in choices.items:
        session.plans.find(item.name)  # so that the others are kept as long as what one tries
    base = choices.base
    plan = await session.edit(base.proposal(session.plans), entries, values)
    return choices.with_edit(plan, base.name, entries)


class Recalled(NamedTuple):
    """The choices that a kept plan was one of, itself chosen; with what limits them, and what was
    typed to edit them."""

    choices: PlanChoices
    limits: tuple[str, ...]
    entries: str


def recalled(plans: KeptPlans, name: str) -> Recalled:
    """A kept plan on offer again.

    Raises:
        PlanGoneError: it is kept no longer, or it moves nothing.
    """
    kept = plans.find(name)
    base = plans.find(kept.base) if kept else None
    of = base or kept
    if kept is None or of is None or of.alternative not in _moving(of.plan):
        raise PlanGoneError
    choices = replace(PlanChoices.of_plan(of.plan), at=_moving(of.plan).index(of.alternative))
    if base is None:
        return Recalled(choices, of.plan.limits, "")
    edited_ones = choices.with_edit(kept.plan, kept.base, kept.entries)
    return Recalled(edited_ones, of.plan.limits, kept.entries)


def _moving(plan: Plan) -> list[Alternative]:
    return [item for item in plan.alternatives if item.proposal.changes]


def _digest(entries: str) -> str:
    return blake2b(entries.strip().encode(), digest_size=8).hexdigest()
