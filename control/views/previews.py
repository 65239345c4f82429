"""A preview as programs get it, and the hash by which they confirm that very one."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Final

from control.operations.operation_session import FRESH_S
from control.operations.previews import Previewed
from control.operations.reassignment.planning import Preview
from planner.proposal import PartitionChange

PARTITIONS_MAX: Final = 10_000
"""Partitions of a plan that are told one by one; the hash is about all."""


def reassignment_document(preview: Preview) -> dict[str, Any]:
    """Figures and pre-flight of a plan."""
    proposal = preview.proposal
    return {
        "partitions": len(proposal.changes),
        "replicas": proposal.moved_replicas,
        "bytes": proposal.moved_bytes,
        "throttle_bytes_per_s": preview.throttle_bytes_per_s,
        "expected_s": [_finite(preview.seconds_min), _finite(preview.seconds_max)],
        "is_refused": preview.is_refused,
        "checks": [
            {"name": check.name, "verdict": check.verdict.value, "reason": check.reason}
            for check in preview.checks
        ],
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def preview_document(previewed: Previewed) -> dict[str, Any]:
    """Everything that somebody reads before confirming it."""
    told = _told(previewed)
    plan = told["plan"]
    return {
        **told,
        "plan": plan[:PARTITIONS_MAX],
        "partitions_left_out": max(len(plan) - PARTITIONS_MAX, 0),
        "hash": preview_hash(previewed),
        "expires_in_s": FRESH_S,
    }


def preview_hash(previewed: Previewed) -> str:
    """SHA-256 over the whole preview, every partition of a plan included."""
    return hashlib.sha256(json.dumps(_told(previewed), sort_keys=True).encode()).hexdigest()


def _told(previewed: Previewed) -> dict[str, Any]:
    effect = previewed.effect
    review, refusal = effect.review, effect.refusal
    moves = () if review is None else review.proposal.changes
    return {
        "preview": previewed.name,
        "operation": previewed.form.name,
        "what": effect.command.what,
        "word": previewed.word,
        "is_needed": previewed.is_needed,
        "changes": [
            {"name": it.name, "now": it.now, "then": it.then, "words": it.line}
            for it in effect.changes
        ],
        "notes": list(effect.notes),
        "refusal": None if refusal is None else refusal.reason,
        "reassignment": None if review is None else reassignment_document(review),
        "plan": [_move(it) for it in moves],
    }


def _move(change: PartitionChange) -> Mapping[str, Any]:
    return {
        "topic": change.topic,
        "partition": change.partition,
        "from": list(change.before),
        "to": list(change.after),
    }
