"""The JSON of ``partiscope plan --json``; its keys are a contract."""

from dataclasses import asdict
from typing import Any

from planner.explain import Reasons
from planner.figures import Balance
from planner.optimizer import Alternative, Plan
from planner.reassignment_json import reassignment_document
from planner.topology import topology_document


def plan_document(plan: Plan, *, seconds: float) -> dict[str, Any]:
    """Alternatives with Kafka's reassignment JSON each, and the topologies before and after."""
    return {
        "alternatives": [alternative_document(plan, a) for a in plan.alternatives],
        "before": topology_document(plan.before),
        "balance_before": balance_document(plan.balance_before),
        "limits": list(plan.limits),
        "seconds": round(seconds, 3),
    }


def alternative_document(plan: Plan, alternative: Alternative) -> dict[str, Any]:
    """One alternative."""
    proposal = alternative.proposal
    reasons = Reasons(plan.before, plan.request)
    return {
        "name": alternative.name,
        "moved_replicas": proposal.moved_replicas,
        "moved_bytes": proposal.moved_bytes,
        "moved_leaders": proposal.moved_leaders,
        "lower_bound_bytes": alternative.lower_bound_bytes,
        "lower_bound_replicas": alternative.lower_bound_replicas,
        "violations": [str(violation) for violation in alternative.violations],
        "balance": balance_document(alternative.balance),
        "assignment": reassignment_document(proposal.targets()),
        "why": {str(change.key): reasons.why(change) for change in proposal.changes},
        "after": topology_document(plan.before.with_replicas(proposal.targets())),
    }


def balance_document(balance: Balance) -> dict[str, Any]:
    """``{"replicas": {"max","min","mean"}, "leaders": {...}, "bytes": {...}}``."""
    return asdict(balance)
