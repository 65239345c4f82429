"""Operator: everything that can be done to a cluster, the same for both screens and scripts.

Methods that take a form's values are named as the form in control.operations.registry. Whatever
changes the cluster is judged by control.operations.guard, with what the operator has ``typed``,
and leaves a line in the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from control.kafka.admin import KafkaAdmin
from control.kafka.errors import KafkaPortError
from control.kafka.ports import (
    CLUSTERS_OWN,
    ConfigResource,
    ConfigScope,
    ElectionType,
    NewTopic,
)
from control.kafka.producer import ProducerOptions
from control.lab.partitioners import KeyRule, partitions_for_key
from control.lab.session import ProduceJob, ProduceSession
from control.model.fleet import Site, WatchedCluster
from control.model.ids import TopicPartition
from control.operations import checks, registry
from control.operations.client import OperationsClient, whoami
from control.operations.conflicts import check_others, unknown_others
from control.operations.errors import ConflictError, InvalidInputError
from control.operations.group_offsets import OffsetReset, apply_reset, preview_reset
from control.operations.guard import check_change, check_configs, check_control, check_topic
from control.operations.journal import Journal
from control.operations.planning import Planning, Preview
from control.operations.verdict import Check, Verdict
from control.operations.whole_preview import whole_preview
from control.planner.by_hand import NOTHING, HandError, LeaderOrder
from control.planner.ghost import KeptPlans, plan_name
from control.planner.goals import Goal, PlanRequest
from control.planner.optimizer import Plan
from control.planner.proposal import Proposal
from control.planner.waves import USUAL_WAVES, LeaderTurn, SizeOrder, WaveRules

Values = Mapping[str, str]


class Operator:
    """One cluster and one bus. Use as an async context manager, in one event loop."""

    def __init__(self, watched: WatchedCluster, *, bus: str | None, who: str | None = None) -> None:
        """``bus`` None: nobody carries out what takes time, and there is no journal."""
        self.watched = watched
        self.bootstrap = bootstrap = watched.bootstrap or ""
        self.admin = KafkaAdmin.to(bootstrap)
        self.planning = Planning(self.admin)
        self.plans = KeptPlans()
        self.moves = OperationsClient(bus, who=who, of=watched)
        self.journal = Journal(bus, of=watched, who=who or whoami())

    async def __aenter__(self) -> Operator:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(self.admin.close(), self.moves.close(), self.journal.close())

    async def plan(self, values: Values) -> Plan:
        """Alternatives for the reassign form; a partition with replicas is a plan by hand.

        :raises InvalidInputError: a wrong field.
        :raises GoalError: a request that makes no sense for the cluster.
        """
        fields = registry.REASSIGN.parse(values)
        request = _plan_request(fields)
        entries, field = fields["by_hand"], "by_hand"
        if fields["partition"]:
            entries, field = f"{_one_partition(fields)}: {fields['replicas']}", "partition"
        if not entries:
            return self.plans.keep(await self.planning.plan(request), values)
        return await self._by_hand(fields, entries, field)

    async def edit(self, chosen: Proposal, entries: str, values: Values) -> Plan:
        """A chosen alternative with some partitions placed by hand, judged again.

        :raises InvalidInputError: an entry that cannot be.
        """
        fields = registry.REASSIGN.parse(values)
        return await self._by_hand(fields, entries, "by_hand", base=chosen)

    async def _by_hand(
        self, fields: Values, entries: str, field: str, *, base: Proposal = NOTHING
    ) -> Plan:
        order = LeaderOrder(fields["leader_order"])
        scope = replace(_plan_request(fields), topics=())
        try:
            made = await self.planning.by_hand(scope, entries, base=base, leaders=order)
        except HandError as error:
            raise InvalidInputError({field: str(error)}) from error
        if not base.changes:
            return self.plans.keep(made, fields)
        return self.plans.keep(made, fields, base=plan_name(base), entries=entries)

    async def preview(self, proposal: Proposal, values: Values) -> Preview:
        """Now and after, with pre-flight, for a chosen alternative."""
        fields = registry.REASSIGN.parse(values)
        return await whole_preview(
            self.planning,
            self.moves,
            proposal,
            site=self.watched.site,
            throttle=fields["throttle"],
            rules=_wave_rules(fields),
        )

    async def reassign(self, proposal: Proposal, values: Values, *, typed: str = "") -> str:
        """Submit a previewed proposal; answers the operation id to watch with `moves`."""
        check_change(self.watched, "the reassignment", typed=typed)
        fields = registry.REASSIGN.parse(values)
        others = await _others(self.moves, proposal, self.watched.site)
        if others.verdict is Verdict.FAIL:
            raise ConflictError(others.reason)
        return await self.moves.submit_reassign(
            proposal,
            bootstrap=self.bootstrap,
            cluster_id=(await self.admin.describe_cluster()).cluster_id,
            throttle=fields["throttle"],
            waves=_wave_rules(fields),
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
        check_control(self.watched, action, f"{words} of {operation_id}", typed=typed)
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

    async def key_preview(self, topic: str, key: str) -> dict[KeyRule, tuple[int, int] | None]:
        """(partition, its leader) that `key` would hit, by rule; None where the client chooses."""
        (metadata,) = await self.admin.topics([topic])
        leaders = {p.partition: p.leader for p in metadata.partitions}
        hits = partitions_for_key(key.encode() if key else None, len(leaders))
        return {
            rule: None if hit is None else (hit, leaders.get(hit, -1)) for rule, hit in hits.items()
        }

    def produce(self, values: Values, *, typed: str = "") -> ProduceSession:
        """A session for the produce form: iterate `run()`, `stop()` ends it.

        :raises InvalidInputError: a wrong field.
        """
        fields = registry.PRODUCE.parse(values)
        check_topic("produce", fields["topic"])
        check_change(self.watched, "producing", typed=typed)
        return ProduceSession(self.admin.wire.settings, produce_job(fields))

    async def create_topic(self, values: Values, *, typed: str = "") -> None:
        """Create a topic and wait until it is led."""
        fields = registry.CREATE_TOPIC.parse(values)
        check_topic("create_topic", fields["topic"])
        check_change(self.watched, "creating the topic", typed=typed)
        topic = NewTopic(
            name=fields["topic"],
            partitions=int(fields["partitions"] or CLUSTERS_OWN),
            replication_factor=int(fields["replication_factor"] or CLUSTERS_OWN),
            configs=checks.pairs(fields["configs"]),
        )
        await self.admin.create_topic(topic)
        await self.journal.write(f"create topic {topic.name}", **fields)

    async def add_partitions(self, values: Values, *, typed: str = "") -> None:
        """Raise a topic's number of partitions."""
        fields = registry.ADD_PARTITIONS.parse(values)
        check_topic("add_partitions", fields["topic"])
        check_change(self.watched, "the change", typed=typed)
        await self.admin.create_partitions(fields["topic"], int(fields["partitions"]))
        await self.journal.write(f"{fields['topic']}: {fields['partitions']} partitions", **fields)

    async def configure_topic(self, values: Values, *, typed: str = "") -> None:
        """Set configs of a topic; an empty value removes one."""
        fields = registry.CONFIGURE_TOPIC.parse(values)
        changes = {name: value or None for name, value in checks.pairs(fields["configs"]).items()}
        check_configs(fields["topic"], changes)
        check_change(self.watched, "the change", typed=typed)
        resource = ConfigResource(scope=ConfigScope.TOPIC, name=fields["topic"])
        await self.admin.alter_configs(resource, changes)
        await self.journal.write(f"configure {fields['topic']}", **fields)

    async def delete_topic(self, values: Values, *, typed: str) -> None:
        """Delete a topic whose name was typed.

        :raises NotConfirmedError: it was not.
        """
        fields = registry.DELETE_TOPIC.parse(values)
        check_topic("delete", fields["topic"])
        check_change(self.watched, "deleting", typed=typed, thing=fields["topic"])
        await self.admin.delete_topic(fields["topic"])
        reason = fields.pop("reason")
        await self.journal.write(f"delete topic {fields['topic']}", reason=reason, **fields)

    async def elect(self, values: Values, *, typed: str = "") -> tuple[int, tuple[str, ...]]:
        """Elect preferred leaders where others lead; (elected, refusals in words)."""
        check_change(self.watched, "the election", typed=typed)
        patterns = _names(registry.ELECT.parse(values)["topics"])
        wrong = [
            partition.key
            for topic in await self.admin.topics()
            for partition in topic.partitions
            if _matches(topic.name, patterns) and partition.leader != partition.replicas[0]
        ]
        if not wrong:
            return 0, ()
        refused = await self.admin.elect_leaders(wrong, ElectionType.PREFERRED)
        await self.journal.write(f"elect {len(wrong)} preferred leaders")
        return len(wrong) - len(refused), tuple(map(str, refused.values()))

    async def preview_reset_offsets(self, values: Values) -> tuple[OffsetReset, ...]:
        """What resetting would change; nothing is changed."""
        fields = registry.RESET_OFFSETS.parse(values)
        topics = [fields["topic"]]
        return await preview_reset(self.admin, fields["group"], topics, fields["to"])

    async def reset_offsets(self, values: Values, *, typed: str) -> tuple[OffsetReset, ...]:
        """Reset a stopped group whose name was typed; answers what was changed.

        :raises NotConfirmedError: it was not.
        """
        fields = registry.RESET_OFFSETS.parse(values)
        check_change(self.watched, "the reset", typed=typed, thing=fields["group"])
        resets = await self.preview_reset_offsets(values)
        await apply_reset(self.admin, fields["group"], resets)
        what = f"reset {fields['group']} on {fields['topic']} to {fields['to']}"
        before = {str(reset.key): reset.before for reset in resets}
        await self.journal.write(what, reason=fields["reason"], before=before)
        return resets


async def _others(moves: OperationsClient, proposal: Proposal, site: Site) -> Check:
    """What other operators have asked for."""
    try:
        states = await moves.list()
    except KafkaPortError as error:
        return unknown_others(str(error))
    return check_others(states, proposal.changes, site=site)


def produce_job(fields: Values) -> ProduceJob:
    """The job of checked values of the produce form."""
    is_tombstone = _is_on(fields["is_tombstone"])
    return ProduceJob(
        topic=fields["topic"],
        value=None if is_tombstone else fields["value"],
        keys=fields["key"] or None,
        partition=int(fields["partition"]) if fields["partition"] else None,
        rule=KeyRule(fields["rule"]),
        count=int(fields["count"]),
        rate=float(fields["rate"]) if fields["rate"] else None,
        headers=tuple((n, v.encode()) for n, v in checks.pairs(fields["headers"]).items()),
        options=ProducerOptions(acks=fields["acks"], compression=fields["compression"]),
    )


def _plan_request(fields: Values) -> PlanRequest:
    return PlanRequest(
        goal=Goal(fields["goal"]),
        topics=_names(fields["topics"]),
        partitions=_names(fields["partitions"]),
        exclude_topics=_names(fields["exclude_topics"]),
        keep_partitions=_names(fields["keep_partitions"]),
        remove_brokers=_ids(fields["remove_brokers"]),
        relieve_brokers=_ids(fields["relieve_brokers"]),
        exclude_brokers=_ids(fields["exclude_brokers"]),
        replication_factor=int(fields["replication_factor"] or 0) or None,
        require_racks=_is_on(fields["require_racks"]),
    )


def _wave_rules(fields: Values) -> WaveRules:
    return WaveRules(
        partitions=int(fields["partitions_per_wave"] or USUAL_WAVES.partitions),
        per_broker=int(fields["partitions_per_broker"] or 0) or None,
        order=SizeOrder(fields["wave_order"]),
        leaders=LeaderTurn(fields["leaders_turn"]),
        spread_s=checks.spread_seconds(fields["spread"]) or 0.0,
    )


def _one_partition(fields: Values) -> TopicPartition:
    topics = _names(fields["topics"])
    if len(topics) != 1:
        raise InvalidInputError({"topics": "name the one topic whose partition moves"})
    if not fields["replicas"]:
        raise InvalidInputError({"replicas": "name the brokers it moves to, the leader first"})
    return TopicPartition(topics[0], int(fields["partition"]))


def _names(text: str) -> tuple[str, ...]:
    return tuple(checks.split_pairs(text))


def _is_on(text: str) -> bool:
    """Of a field of kind flag."""
    return text in ("1", "true", "yes", "on")


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in checks.split_pairs(text))


def _matches(topic: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatchcase(topic, pattern) for pattern in patterns)
