"""OperationSession: all that is done to one cluster, the same for page, terminal and scripts.

An operation goes from Asked (an ``Operation``) to Previewed (its command is frozen) to Confirmed
to Done. Read-only clusters, rights, the word to type, stale previews and the journal are judged
here and nowhere else; a face asks for the word, and shows what is answered.

    Asked --preview()--> Previewed --perform(typed)--> Done
                              └── refused: read-only · no right · another word typed · stale ·
                                           not journaled; nothing is changed then
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from control.kafka.admin import KafkaAdmin
from control.kafka.errors import KafkaPortError
from control.kafka.ports import ConfigEntry, ConfigResource
from control.kafka.wire import answers_soon
from control.model.fleet import Site, WatchedCluster
from control.model.units import duration_text
from control.operations import checks
from control.operations.bus.client import OperationsClient, whoami
from control.operations.bus.journal import Journal
from control.operations.catalogue.operation import Done, Effect, Operation
from control.operations.catalogue.reassign import REASSIGN, one_partition, plan_request, wave_rules
from control.operations.confirmation import check_confirmed, word_for_control
from control.operations.errors import (
    ConflictError,
    InvalidInputError,
    NoRightError,
    ReadOnlyError,
    StalePreviewError,
)
from control.operations.previews import Previewed, Previews
from control.operations.reassignment.conflicts import check_others, unknown_others
from control.operations.reassignment.planning import Planning, Preview
from control.operations.reassignment.preview import whole_preview
from control.operations.verdict import Check, Verdict
from control.planner.by_hand import NOTHING, HandError, LeaderOrder
from control.planner.ghost import KeptPlans, plan_name
from control.planner.optimizer import Plan
from control.planner.proposal import Proposal

FRESH_S: Final = 900.0
"""A preview that is older is made again before it is confirmed."""

Values = Mapping[str, str]
Denied = Callable[[], Mapping[str, str]]


class OperationSession:
    """One cluster and one bus. Use as an async context manager, in one event loop."""

    def __init__(
        self,
        watched: WatchedCluster,
        *,
        bus: str | None,
        who: str | None = None,
        denied: Denied = dict,
    ) -> None:
        """``bus`` None: nobody carries out what takes time, and there is no journal. ``denied``
        answers what the principal may not do, by operation, with the reason in words."""
        self.watched = watched
        self.bootstrap = bootstrap = watched.bootstrap or ""
        self.admin = KafkaAdmin.to(bootstrap)
        self.planning = Planning(self.admin)
        self.plans = KeptPlans()
        self.moves = OperationsClient(bus, who=who, of=watched)
        self.journal = Journal(bus, of=watched, who=who or whoami())
        self._denied = denied
        self._previews = Previews()

    async def __aenter__(self) -> OperationSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(self.admin.close(), self.moves.close(), self.journal.close())

    async def preview(self, asked: Operation) -> Previewed:
        """What performing it would change; nothing is changed.

        :raises OperationError: it may not be done, or has a wrong value.
        :raises KafkaPortError: the cluster refuses, or does not answer (told within seconds).
        """
        self._require_right(asked.FORM.name, asked.what)
        asked.check()
        async with answers_soon(self.admin.wire.settings):
            await self.admin.describe_cluster()
        effect = await asked.preview(self.admin)
        previewed = Previewed(
            effect=effect,
            word=self.watched.word_to_type(asked.thing),
            made_s=time.monotonic(),
            name=secrets.token_urlsafe(12),
        )
        if asked.IS_KEPT:
            self._previews.keep(previewed)
        return previewed

    def kept_preview(self, name: str) -> Previewed:
        """A preview by its name, for a face that has nothing else in hand.

        :raises PreviewGoneError: it is kept no longer.
        """
        return self._previews.named(name)

    async def perform(self, previewed: Previewed, *, typed: str = "") -> Done:
        """Do what was previewed, once, and nothing else; it is in the journal before it begins.
        Who confirms it again hears what came of it.

        :raises OperationError: it may not be done, is stale, or was done in part.
        :raises KafkaPortError: the cluster refuses or does not answer.
        """
        command = previewed.effect.command
        self.require(command.FORM.name, command.what, typed=typed, thing=command.thing)
        command.check()
        kept = self._previews.entry(previewed)
        async with kept.turn:
            if kept.done is None:
                kept.done = await self._perform(previewed)
            return kept.done

    async def _perform(self, previewed: Previewed) -> Done:
        await self._require_fresh(previewed)
        command, changes = previewed.effect.command, previewed.effect.changes
        async with self.journal.entry(
            command.what,
            reason=command.reason,
            before={change.name: change.now for change in changes},
            after={change.name: change.then for change in changes},
            outcome=lambda: command.outcome,
        ):
            return await command.perform(self.admin)

    def require(self, operation: str, what: str, *, typed: str = "", thing: str = "") -> None:
        """``typed`` is what the operator has typed to confirm; ``thing`` would be destroyed.

        :raises ReadOnlyError: nothing may be changed there.
        :raises NoRightError: the principal lacks a right.
        :raises NotConfirmedError: another word must be typed.
        """
        self._require_right(operation, what)
        check_confirmed(self.watched, what, typed=typed, word=self.watched.word_to_type(thing))

    def _require_right(self, operation: str, what: str) -> None:
        if self.watched.is_read_only:
            raise ReadOnlyError(what)
        lacks = self._denied().get(operation)
        if lacks:
            raise NoRightError(what, lacks)

    async def _require_fresh(self, previewed: Previewed) -> None:
        effect, what = previewed.effect, previewed.effect.command.what
        age_s = time.monotonic() - previewed.made_s
        if age_s > FRESH_S:
            raise StalePreviewError(what, f"its preview is {duration_text(age_s * 1000)} old")
        if effect.facts is not None:
            now: Effect[Any] = await effect.command.preview(self.admin)
            if now.facts != effect.facts:
                told = now.lines[0] if now.lines else "there is nothing to change any more"
                raise StalePreviewError(what, f"the cluster has changed since its preview: {told}")

    async def configs(self, resource: ConfigResource) -> tuple[ConfigEntry, ...]:
        """Every config of a topic or broker, with synonyms and Kafka's text.

        :raises RefusedError: it is not there.
        :raises UnreachableError: nobody answers.
        """
        async with answers_soon(self.admin.wire.settings):
            return await self.admin.describe_configs(resource, is_explained=True)

    async def plan(self, values: Values) -> Plan:
        """Alternatives for the reassign form; a partition with replicas is a plan by hand.

        :raises InvalidInputError: a wrong field.
        :raises GoalError: a request that makes no sense for the cluster.
        """
        fields = REASSIGN.parse(values)
        request = plan_request(fields)
        entries, field = fields["by_hand"], "by_hand"
        if fields["partition"]:
            entries, field = f"{one_partition(fields)}: {fields['replicas']}", "partition"
        if not entries:
            return self.plans.keep(await self.planning.plan(request), values)
        return await self._by_hand(fields, entries, field)

    async def edit(self, chosen: Proposal, entries: str, values: Values) -> Plan:
        """A chosen alternative with some partitions placed by hand, judged again.

        :raises InvalidInputError: an entry that cannot be.
        """
        fields = REASSIGN.parse(values)
        return await self._by_hand(fields, entries, "by_hand", base=chosen)

    async def _by_hand(
        self, fields: Values, entries: str, field: str, *, base: Proposal = NOTHING
    ) -> Plan:
        order = LeaderOrder(fields["leader_order"])
        scope = replace(plan_request(fields), topics=())
        try:
            made = await self.planning.by_hand(scope, entries, base=base, leaders=order)
        except HandError as error:
            raise InvalidInputError({field: str(error)}) from error
        if not base.changes:
            return self.plans.keep(made, fields)
        return self.plans.keep(made, fields, base=plan_name(base), entries=entries)

    async def preview_plan(self, proposal: Proposal, values: Values) -> Preview:
        """Now and after, with pre-flight, for a chosen alternative."""
        fields = REASSIGN.parse(values)
        return await whole_preview(
            self.planning,
            self.moves,
            proposal,
            site=self.watched.site,
            throttle=fields["throttle"],
            rules=wave_rules(fields),
        )

    async def reassign(self, proposal: Proposal, values: Values, *, typed: str = "") -> str:
        """Submit a previewed proposal; answers the operation id to watch with `moves`."""
        self.require(REASSIGN.name, "the reassignment", typed=typed)
        fields = REASSIGN.parse(values)
        others = await _others(self.moves, proposal, self.watched.site)
        if others.verdict is Verdict.FAIL:
            raise ConflictError(others.reason)
        return await self.moves.submit_reassign(
            proposal,
            bootstrap=self.bootstrap,
            cluster_id=(await self.admin.describe_cluster()).cluster_id,
            throttle=fields["throttle"],
            waves=wave_rules(fields),
            reason=fields["reason"],
        )

    async def control(
        self, action: str, operation_id: str, *, rate: str = "", typed: str = ""
    ) -> str:
        """``pause``, ``resume``, ``cancel``, ``cancel_after_wave``, or ``throttle`` to a rate;
        answers what was asked for.

        :raises InvalidInputError: no such move, or no such rate.
        """
        words = action.replace("_", " ")
        what = f"{words} of {operation_id}"
        self._require_right(REASSIGN.name, what)
        check_confirmed(
            self.watched, what, typed=typed, word=word_for_control(self.watched, action)
        )
        if action == "throttle":
            problem = checks.throttle(rate)
            if problem is not None:
                raise InvalidInputError({"throttle": problem})
            await self.moves.throttle(operation_id, rate)
            return f"throttle {rate} asked for"
        if action.startswith("cancel"):
            await self.moves.cancel(operation_id, after_wave=action == "cancel_after_wave")
        else:
            asks = {"pause": self.moves.pause, "resume": self.moves.resume}
            await asks[action](operation_id)
        return f"{words} asked for"


async def _others(moves: OperationsClient, proposal: Proposal, site: Site) -> Check:
    """What other operators have asked for."""
    try:
        states = await moves.list()
    except KafkaPortError as error:
        return unknown_others(str(error))
    return check_others(states, proposal.changes, site=site)
