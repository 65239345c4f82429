"""OperationSession: all that is done to one cluster, the same for page, terminal and scripts.

An operation goes from Asked (an ``Operation``) to Previewed (its command is frozen) to Confirmed
to Done. Read-only clusters, roles, rights, the word to type, the age of a preview and the journal
are judged here and nowhere else; an operation says whether the cluster changed since its preview
(``require_fresh``). A face asks for the word, and shows what is answered.

    Asked --preview()--> Previewed --perform(typed)--> Done
                              └── refused: read-only · no role · no right · another word · stale ·
                                           of another login · not journaled; nothing is changed then
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from control.access.login import acting_name
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.connections import settings_of
from control.kafka.connection.settings import KafkaSettings
from control.kafka.connection.wire import answers_soon
from control.kafka.ports import ConfigEntry, ConfigResource, TopicMetadata
from control.messages.topic_limits import KnownLimits
from control.model.units import duration_text
from control.model.watched_cluster import WatchedCluster
from control.operations.bus.client import MovesReader, OperationsClient, whoami
from control.operations.bus.journal import Journal
from control.operations.catalogue.moves.reassign import REASSIGN, Task, one_partition, plan_request
from control.operations.catalogue.operation import Done, Operation, OperationContext
from control.operations.catalogue.topics.produce import Produce
from control.operations.errors import (
    InvalidInputError,
    NoRightError,
    PreviewGoneError,
    StalePreviewError,
)
from control.operations.permission import check_typed, check_writable
from control.operations.previews import Previewed, Previews
from control.operations.reassignment.planning import Planning
from control.operations.role_check import check_records, check_role, check_role_on_topics
from control.operations.sends import Sends
from planner.by_hand import NOTHING, HandError, LeaderOrder
from planner.optimizer import Plan
from planner.planned_map import KeptPlans, plan_name
from planner.proposal import Proposal

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
        self.admin = KafkaAdmin.to(settings_of(bootstrap, cluster_id=watched.cluster_id or ""))
        self.planning = Planning(self.admin)
        self.plans = KeptPlans()
        self._client = OperationsClient(bus, who=who, of=watched)
        self.moves: MovesReader = self._client
        self.journal = Journal(bus, of=watched, who=who or whoami())
        self._denied = denied
        self._previews = Previews()
        self._limits = KnownLimits(self.settings)
        self.sends = Sends(self)
        self._context = OperationContext(
            admin=self.admin,
            moves=self._client,
            planning=self.planning,
            site=watched.site,
            outages=watched.outages,
        )

    async def __aenter__(self) -> OperationSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.sends.close()
        await asyncio.gather(self.admin.close(), self.moves.close(), self.journal.close())

    @property
    def settings(self) -> KafkaSettings:
        """How the cluster is reached."""
        return self.admin.wire.settings

    def records(self, topic: str) -> KafkaSettings:
        """The same, for who reads records of a topic.

        :raises NoRightError: who acts may not read them.
        """
        check_records(self.watched, topic)
        return self.settings

    async def topics(self) -> tuple[TopicMetadata, ...]:
        """All that the cluster has."""
        return await self.admin.topics()

    async def limits(self, asked: Produce) -> str:
        """The limits of the topic of these records, in words.

        :raises OperationError: a field that cannot be read.
        :raises KafkaPortError: a limit that the first record exceeds, or no answer.
        """
        return asked.within(await self._limits.of(asked.job.topic))

    async def preview(self, asked: Operation, *, is_kept: bool | None = None) -> Previewed:
        """The changes that an operation would make; nothing is changed. ``is_kept``: whether its
        name finds it again; None: as the operation says.

        :raises OperationError: it may not be done, or has a wrong value.
        :raises KafkaPortError: the cluster refuses, or does not answer (told within seconds).
        """
        self._require_allowed(asked)
        asked.check()
        await asked.require_answer(self._context)
        effect = await asked.preview(replace(self._context, read={}))
        check_role_on_topics(self.watched, effect)
        previewed = Previewed(
            effect=effect,
            word=effect.command.word(self.watched),
            made_s=time.monotonic(),
            name=secrets.token_urlsafe(12),
            by=acting_name(),
        )
        if asked.IS_KEPT if is_kept is None else is_kept:
            self._previews.keep(previewed)
        return previewed

    def kept_preview(self, name: str) -> Previewed:
        """A preview by its name, for a face that has nothing else in hand.

        :raises PreviewGoneError: it is kept no longer, or somebody else has made it.
        """
        return _own(self._previews.named(name))

    async def perform(self, previewed: Previewed, *, typed: str = "", reason: str = "") -> Done:
        """Do what was previewed, once, and nothing else; it is in the journal before it begins.
        Who confirms it again hears what came of it.

        ``typed`` is the word to confirm it; ``reason``, where it is given after the preview, takes
        the place of the command's.

        :raises OperationError: it may not be done, is stale, or was done in part.
        :raises KafkaPortError: the cluster refuses or does not answer.
        """
        command = _own(previewed).effect.command
        self.require(command, typed=typed)
        check_role_on_topics(self.watched, previewed.effect)
        command.check()
        kept = self._previews.entry(previewed)
        async with kept.turn:
            if kept.done is None:
                kept.done = await self._perform(
                    previewed, reason, replace(self._context, confirmed=typed)
                )
            return kept.done

    async def _perform(self, previewed: Previewed, reason: str, context: OperationContext) -> Done:
        effect = previewed.effect
        command = replace(effect.command, reason=reason) if reason else effect.command
        if effect.refusal is not None:
            raise effect.refusal
        age_s = time.monotonic() - previewed.made_s
        if age_s > FRESH_S:
            why = f"its preview is {duration_text(age_s * 1000)} old"
            raise StalePreviewError(command.what, why)
        await command.require_answer(context)
        await command.require_fresh(context, effect.facts)
        if command.IS_JOURNALED_BY_BUS:
            done = await command.perform(context)
            await self.journal.seal(
                f"{command.what}: {done.words}", done.params["move"], reason=command.reason
            )
            return done
        async with self.journal.entry(
            command.what,
            reason=command.reason,
            before={change.name: change.now for change in effect.changes},
            after={change.name: change.then for change in effect.changes},
            outcome=lambda: command.outcome,
            shortfall=lambda: command.shortfall,
        ):
            return await command.perform(context)

    def require(self, command: Operation, *, typed: str = "") -> None:
        """``typed`` is what the operator has typed to confirm it.

        :raises ReadOnlyError: nothing may be changed there.
        :raises NoRightError: the principal lacks a right, or who acts has no role with it.
        :raises NotConfirmedError: another word must be typed.
        """
        self._require_allowed(command)
        check_typed(command.what, typed=typed, word=command.word(self.watched))

    def _require_allowed(self, command: Operation) -> None:
        check_writable(self.watched, command.what)
        check_role(self.watched, command)
        lacks = self._denied().get(command.form.right)
        if lacks:
            raise NoRightError(command.what, lacks)

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
        if not entries and fields["task"] == Task.BY_HAND:
            raise InvalidInputError({"by_hand": "name partitions with their new brokers"})
        if not entries:
            return self.plans.keep(await self.planning.plan(request), fields)
        return await self._by_hand(fields, entries, field)

    async def edit(self, chosen: Proposal, entries: str, values: Values) -> Plan:
        """A chosen alternative with some partitions placed by hand, judged again.

        :raises InvalidInputError: an entry that cannot be.
        """
        fields = REASSIGN.parse(values)
        order = {"leader_order": values.get("leader_order") or LeaderOrder.GIVEN}
        return await self._by_hand({**fields, **order}, entries, "by_hand", base=chosen)

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


def _own(previewed: Previewed) -> Previewed:
    """:raises PreviewGoneError: somebody else has made it."""
    if previewed.by != acting_name():
        raise PreviewGoneError
    return previewed
