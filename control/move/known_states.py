"""States folded from events, each event once; plans of what has ended are kept packed.

A plan of 2,000 partitions takes half a megabyte as objects and 40 KB packed. Lists need its
figures only, so it is unpacked for what runs and for the one that is looked at.
"""

import json
import zlib
from collections import OrderedDict
from dataclasses import replace
from typing import Final

from control.move.change_codec import Packed, unpack
from control.move.events import Event, EventKind
from control.move.state import OperationState, apply_event, is_heeded

PLANS_BYTES_MAX: Final = 64 << 20
"""Of packed plans of operations that have ended; the oldest are read from the bus again when
somebody looks at them."""


class KnownStates:
    """By operation id. Journal lines are no operations, and are left out."""

    def __init__(self, *, kept_max: int | None = None) -> None:
        """``kept_max``: so many operations, the newest; None: all."""
        self._states: dict[str, OperationState] = {}
        self._plans: OrderedDict[str, str | bytes] = OrderedDict()
        self._plans_bytes = 0
        self._kept_max = kept_max

    def clear(self) -> None:
        """Forget all: everything is told once more."""
        self._states.clear()
        self._plans.clear()
        self._plans_bytes = 0

    def take(self, event: Event) -> None:
        """One more event. A repeated one changes nothing but times and notes."""
        if event.kind is EventKind.JOURNAL:
            return
        name = event.operation_id
        known = self._states.get(name, OperationState(operation_id=name))
        if not is_heeded(known, event):
            return
        if event.kind is EventKind.ACCEPTED and event.data.get("partitions") is not None:
            self._keep(name, event.data["changes"])
            event = replace(event, data={**event.data, "changes": []})
        state = apply_event(known, event)
        if state.is_finished and state.changes:
            state = replace(
                state,
                changes=(),
                told_partitions=len(state.changes),
                told_bytes=state.planned_bytes,
            )
        elif event.kind is EventKind.ACCEPTED and state.changes:
            self._keep(name, event.data["changes"])
        self._states[name] = state
        if self._kept_max is not None and len(self._states) > self._kept_max:
            oldest = min(self._states.values(), key=lambda it: it.submitted_ms)
            self._forget(oldest.operation_id)

    def __contains__(self, operation_id: str) -> bool:
        return operation_id in self._states

    def all(self) -> list[OperationState]:
        """In order of their first events: with the plan of what runs, without that of the rest."""
        return [self.get(name, is_whole=not it.is_finished) for name, it in self._states.items()]

    def get(self, operation_id: str, *, is_whole: bool = True) -> OperationState:
        """One of them. Its plan lacks where it is not kept (``has_plan``).

        :raises KeyError: it is not known.
        """
        state = self._states[operation_id]
        plan = self._plans.get(operation_id)
        if not is_whole or state.changes or plan is None:
            return state
        packed = plan if isinstance(plan, str) else json.loads(zlib.decompress(plan))
        whole = replace(state, changes=unpack(packed))
        if not state.is_finished:
            self._states[operation_id] = whole
        return whole

    def has_plan(self, operation_id: str) -> bool:
        """Whether ``get`` answers all of it."""
        return operation_id in self._plans or bool(self._states[operation_id].changes)

    def _keep(self, operation_id: str, packed: Packed) -> None:
        plan: str | bytes
        if isinstance(packed, str):
            plan = packed
        else:
            plan = zlib.compress(json.dumps(packed, separators=(",", ":")).encode(), level=1)
        self._plans_bytes += len(plan) - len(self._plans.pop(operation_id, b""))
        self._plans[operation_id] = plan
        while self._plans_bytes > PLANS_BYTES_MAX:
            name = next((it for it in self._plans if self._has_ended(it)), None)
            if name is None:
                return
            self._plans_bytes -= len(self._plans.pop(name))

    def _has_ended(self, operation_id: str) -> bool:
        state = self._states.get(operation_id)
        return state is not None and state.is_finished

    def _forget(self, operation_id: str) -> None:
        del self._states[operation_id]
        self._plans_bytes -= len(self._plans.pop(operation_id, b""))
