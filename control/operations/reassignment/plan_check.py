"""A plan of any tool, judged beside the cluster: what it moves, the least that the same balance
takes, and what pre-flight says. Nothing here changes the cluster, or needs the executor."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from control.kafka.ports import ClusterPort
from control.model.ids import TopicPartition, no_partition_words
from control.model.units import bytes_text, counted
from control.move.check import NAMES_MAX, Check, Verdict, check_of
from control.move.throttle import Throttle
from control.operations.reassignment.facts import facts_of
from control.operations.reassignment.planning import Planning, Preview
from control.operations.reassignment.preflight import EXISTENCE, GROUPS, RIGHTS, preflight
from control.operations.reassignment.preflight_load import THROTTLE, TIME
from planner.figures import Balance
from planner.goals import PlanRequest
from planner.optimizer import Alternative, judged_plan
from planner.proposal import Proposal, proposal_of
from planner.report import balance_document
from planner.topology import Topology

Targets = Mapping[TopicPartition, Sequence[int]]
NAME: Final = "checked"
_OF_THE_RUN: Final = frozenset({THROTTLE, TIME, GROUPS})
"""Checks that say nothing of a cluster in a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCheck:
    """A judged plan: its figures, and every verdict about it."""

    judged: Alternative
    balance_before: Balance
    emptied: tuple[int, ...]
    """Brokers that hold replicas now and none afterwards: the balance is of the others."""
    checks: tuple[Check, ...]
    preview: Preview | None = None
    """None: only the topology in a file is known."""

    @property
    def proposal(self) -> Proposal:
        """Its changes."""
        return self.judged.proposal

    @property
    def wasted_bytes(self) -> int | None:
        """Above the proven least; None where nothing is proven."""
        least = self.judged.lower_bound_bytes
        return None if least is None else max(0, self.proposal.moved_bytes - least)

    @property
    def wasted_replicas(self) -> int | None:
        """Above the proven least; None where nothing is proven."""
        least = self.judged.lower_bound_replicas
        return None if least is None else max(0, self.proposal.moved_replicas - least)

    def verdict(self, *, is_strict: bool = False) -> Verdict:
        """The worst of all checks; ``is_strict``: warnings fail as well."""
        found = {check.verdict for check in self.checks}
        if Verdict.FAIL in found or (is_strict and Verdict.WARN in found):
            return Verdict.FAIL
        return Verdict.WARN if Verdict.WARN in found else Verdict.OK


def check_offline(topology: Topology, targets: Targets, *, waste_percent_max: float) -> PlanCheck:
    """Judge a plan by the topology alone, by the same checks as beside a cluster."""
    known, unknown = _known(topology, targets)
    proposal = proposal_of(NAME, topology, known)
    judged, before, emptied = _judged(topology, proposal)
    checks = preflight(facts_of(topology), proposal.changes, throttle_bytes_per_s=None)
    return PlanCheck(
        judged=judged,
        balance_before=before,
        emptied=emptied,
        checks=(
            *_with_unknown((it for it in checks if it.name not in _OF_THE_RUN), unknown),
            *_gains(judged, before, emptied, waste_percent_max),
        ),
    )


async def check_plan(
    admin: ClusterPort, targets: Targets, *, throttle: Throttle, waste_percent_max: float
) -> PlanCheck:
    """Judge a plan by the cluster as it is now.

    :raises InvalidInputError: the throttle is none.
    :raises KafkaPortError: the cluster could not be read.
    """
    planning = Planning(admin)
    topology = await planning.topology()
    known, unknown = _known(topology, targets)
    proposal = proposal_of(NAME, topology, known)
    preview = await planning.preview(proposal, throttle=throttle)
    judged, before, emptied = _judged(topology, proposal)
    return PlanCheck(
        judged=judged,
        balance_before=before,
        emptied=emptied,
        checks=(
            *map(_of_who_looks, _with_unknown(preview.checks, unknown)),
            *_gains(judged, before, emptied, waste_percent_max),
        ),
        preview=preview,
    )


def check_document(check: PlanCheck, *, is_strict: bool) -> dict[str, Any]:
    """For scripts; its keys are a contract."""
    proposal, judged, preview = check.proposal, check.judged, check.preview
    return {
        "passes": check.verdict(is_strict=is_strict) is not Verdict.FAIL,
        "partitions": len(proposal.changes),
        "moved_replicas": proposal.moved_replicas,
        "moved_bytes": proposal.moved_bytes,
        "moved_leaders": proposal.moved_leaders,
        "least_replicas": judged.lower_bound_replicas,
        "least_bytes": judged.lower_bound_bytes,
        "wasted_replicas": check.wasted_replicas,
        "wasted_bytes": check.wasted_bytes,
        "emptied_brokers": list(check.emptied),
        "balance_before": balance_document(check.balance_before),
        "balance_after": balance_document(judged.balance),
        "throttle_bytes_per_s": preview.throttle_bytes_per_s if preview else None,
        "expected_s": [preview.seconds_min, preview.seconds_max] if preview else None,
        "checks": [
            {"name": it.name, "verdict": it.verdict.value, "reason": it.reason}
            for it in check.checks
        ],
    }


def _known(topology: Topology, targets: Targets) -> tuple[Targets, list[str]]:
    """(targets that exist, a reason for each other one)."""
    keys = {partition.key for partition in topology.partitions}
    counts = Counter(key.topic for key in keys)
    known = {key: after for key, after in targets.items() if key in keys}
    unknown = [
        no_partition_words(*key, counts[key.topic])
        if counts[key.topic]
        else f"{key} does not exist"
        for key in sorted(targets.keys() - keys)
    ]
    return known, unknown


def _with_unknown(checks: Iterable[Check], unknown: Sequence[str]) -> Iterable[Check]:
    """Partitions that do not exist fail the check of partitions."""
    for check in checks:
        if unknown and check.name == EXISTENCE:
            yield check_of(EXISTENCE, unknown, fine="")
        else:
            yield check


def _of_who_looks(check: Check) -> Check:
    """Rights that lack are told, and fail nothing: another user may run the plan."""
    if check.name != RIGHTS or check.verdict is Verdict.OK:
        return check
    return replace(check, verdict=Verdict.OK, reason=f"to run it, this user {check.reason}")


def _judged(topology: Topology, proposal: Proposal) -> tuple[Alternative, Balance, tuple[int, ...]]:
    emptied = _emptied(topology, proposal)
    made = judged_plan(topology, PlanRequest(remove_brokers=emptied), proposal)
    return made.alternatives[0], made.balance_before, emptied


def _emptied(topology: Topology, proposal: Proposal) -> tuple[int, ...]:
    targets = proposal.targets()
    now = {broker for it in topology.partitions for broker in it.replicas}
    then = {broker for it in topology.partitions for broker in targets.get(it.key, it.replicas)}
    return tuple(sorted(now - then))


def _gains(
    judged: Alternative, before: Balance, emptied: Sequence[int], waste_percent_max: float
) -> tuple[Check, ...]:
    """Checks of the balance that it reaches, and of its bytes above the least."""
    return _check_balance(judged, before, emptied), _check_waste(judged, emptied, waste_percent_max)


def _check_balance(judged: Alternative, before: Balance, emptied: Sequence[int]) -> Check:
    worse = [
        f"the broker with the most {word} gets {_figure(word, then)}, it has {_figure(word, now)}"
        for word, now, then in (
            ("replicas", before.replicas.max, judged.balance.replicas.max),
            ("leaders", before.leaders.max, judged.balance.leaders.max),
            ("bytes", before.bytes.max, judged.balance.bytes.max),
        )
        if then > now and not emptied
    ]
    if emptied:
        fine = f"brokers {_named(emptied)} hold nothing afterwards"
    else:
        fine = "no broker gets more than the fullest has now"
    return check_of("balance", worse, fine=fine, verdict=Verdict.WARN)


def _check_waste(judged: Alternative, emptied: Sequence[int], percent_max: float) -> Check:
    moved, least = judged.proposal.moved_bytes, judged.lower_bound_bytes
    if least is None:
        return Check(name="waste", verdict=Verdict.OK, reason="no minimum is proven for this plan")
    wasted = max(0, moved - least)
    percent = 100 * wasted / moved if moved else 0.0
    empties = f" that empties brokers {_named(emptied)}" if emptied else ""
    words = (
        f"{bytes_text(moved)} move; any plan to the same balance{empties} moves at least "
        f"{bytes_text(least)}: {percent:.1f} % of the move is above it"
    )
    if percent <= percent_max:
        return Check(name="waste", verdict=Verdict.OK, reason=words)
    reason = (
        f"{words}, more than {percent_max:g} %; `partiscope plan` offers a plan that moves less"
    )
    return Check(name="waste", verdict=Verdict.FAIL, reason=reason)


def _named(brokers: Sequence[int]) -> str:
    more = f" and {len(brokers) - NAMES_MAX} more" if len(brokers) > NAMES_MAX else ""
    return ", ".join(map(str, brokers[:NAMES_MAX])) + more


def _figure(word: str, value: int) -> str:
    return bytes_text(value) if word == "bytes" else counted(value, word.removesuffix("s"))
