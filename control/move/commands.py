"""Commands that travel through the operations topic, as JSON of version 1.

A command is a request, not a fact: the executor answers with events (control.move.events).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from control.model.watched_cluster import Site
from control.move.change_codec import pack
from control.move.throttle import THROTTLE_AUTO, Throttle
from control.move.window import MoveWindow
from control.move.yields import NEVER_YIELDS, YieldRules
from planner.proposal import PartitionChange, Proposal
from planner.waves import USUAL_WAVES, WaveRules

OPERATIONS_TOPIC: Final = "__partiscope_operations"
COMMAND_VERSION: Final = 1

TopicIds = Mapping[str, str]
"""Ids of topics by name, as far as the cluster tells."""
NO_IDS: Final[TopicIds] = {}


class ControlAction(StrEnum):
    """Actions on a running operation."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    CANCEL_AFTER_WAVE = "cancel_after_wave"
    """What is moving arrives; nothing else begins."""
    THROTTLE = "throttle"
    """To another rate, which the command carries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignCommand:
    """Bring partitions from `before` to `after` on the cluster at `bootstrap`.

    `is_strict` refuses the plan when a partition is no longer where `before` says; a way back
    is not, and leaves that one as it is.
    """

    operation_id: str
    bootstrap: str
    changes: tuple[PartitionChange, ...]
    throttle: Throttle = THROTTLE_AUTO
    waves: WaveRules = USUAL_WAVES
    yields: YieldRules = NEVER_YIELDS
    window: MoveWindow | None = None
    """Hours of the day in which waves begin; null: at any time."""
    elects_preferred: bool = True
    allows_replication_factor_change: bool = False
    is_strict: bool = True
    rollback_of: str | None = None
    topic_ids: TopicIds = field(default_factory=dict)
    """Of a rollback: ids of the topics that the operation moved."""
    who: str = ""
    reason: str = ""
    submitted_ms: int = 0
    cluster_id: str = ""
    """It is about this cluster and no other one at that address; empty: nobody has told."""
    confirmed: str = ""
    """The word that the operator typed; a production cluster wants its name."""
    is_foreign: bool = False
    """Read from the bus without a proof that a known installation wrote it; it is not encoded."""

    @property
    def site(self) -> Site:
        """Where it is to be done."""
        return Site(self.bootstrap, self.cluster_id)

    @property
    def proposal(self) -> Proposal:
        """The changes with their figures and inverse."""
        return Proposal(name=self.operation_id, changes=self.changes)

    @property
    def rolled_back(self) -> str | None:
        """The operation that this one rolls back; None: it is no rollback."""
        return None if self.is_strict else self.rollback_of or "the move"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlCommand:
    """Pause, resume, cancel or throttle an operation."""

    operation_id: str
    action: ControlAction
    throttle: Throttle | None = None
    who: str = ""
    reason: str = ""
    submitted_ms: int = 0
    confirmed: str = ""
    """As ``ReassignCommand`` has it."""
    is_foreign: bool = False
    """As ``ReassignCommand`` has it."""


Command = ReassignCommand | ControlCommand

ACT_AHEAD_MAX_MS: Final = 24 * 3_600_000
"""An act may carry a time that lies so far ahead of the executor's clock."""


def encode_command(command: Command) -> bytes:
    """The value of a record of the operations topic; its key is the operation id."""
    document: dict[str, Any] = {
        "v": COMMAND_VERSION,
        "operation_id": command.operation_id,
        "who": command.who,
        "reason": command.reason,
        "submitted_ms": command.submitted_ms,
        **({"confirmed": command.confirmed} if command.confirmed else {}),
    }
    if isinstance(command, ControlCommand):
        document |= {"kind": "control", "action": command.action.value}
        document |= {} if command.throttle is None else {"throttle": command.throttle}
    else:
        document |= {
            "kind": "reassign",
            "bootstrap": command.bootstrap,
            "cluster_id": command.cluster_id,
            "changes": pack(command.changes),
            "throttle": command.throttle,
            **_waves_document(command.waves),
            "yields": command.yields.document(),
            **({} if command.window is None else {"window": command.window.document()}),
            "elects_preferred": command.elects_preferred,
            "allows_replication_factor_change": command.allows_replication_factor_change,
            "is_strict": command.is_strict,
            "rollback_of": command.rollback_of,
            "topic_ids": dict(command.topic_ids),
        }
    return json.dumps(document, separators=(",", ":")).encode()


def _waves_document(rules: WaveRules) -> dict[str, Any]:
    return {
        "partitions_per_wave": rules.partitions,
        "partitions_per_broker": rules.per_broker,
        "wave_order": rules.order.value,
        "leaders_turn": rules.leaders.value,
        "spread_s": rules.spread_s,
    }
