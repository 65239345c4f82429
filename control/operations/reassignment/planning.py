"""Plan and preview on a live cluster. Nothing here changes it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from control.kafka.connection.together import together
from control.kafka.ports import ClusterPort
from control.model.ids import TopicPartition, no_partition_words
from control.model.units import byte_rate_text, duration_text
from control.move.rollback_plan import RollbackPlan
from control.move.throttle import THROTTLE_AUTO, THROTTLE_NONE, Throttle
from control.operations.checks import fixed_rate
from control.operations.errors import InvalidInputError
from control.operations.reassignment.cluster_probes import (
    measure_growth,
    measure_produced,
    read_fetch_backoffs,
    read_readers,
    read_standing_rates,
)
from control.operations.reassignment.facts import (
    ClusterFacts,
    as_cancelled,
    read_facts,
    to_go,
    topology_of,
)
from control.operations.reassignment.preflight import Check, is_refused, preflight
from control.operations.reassignment.preflight_load import (
    expected_seconds,
    lowest_rate,
    spread_of,
    waves_now,
)
from control.operations.reassignment.producer_traffic import auto_rate, bytes_in
from control.operations.reassignment.spreading import NOT_SPREAD, SpreadEstimate
from control.operations.reassignment.topic_ids import facts_of
from planner.by_hand import NOTHING, LeaderOrder, edited, parse_edits
from planner.figures import Balance, balance_of, loads_of
from planner.goals import Goal, PlanRequest
from planner.optimizer import Plan, judged_plan, plan
from planner.proposal import PartitionChange, Proposal, proposal_of
from planner.topology import Topology
from planner.waves import USUAL_WAVES, WaveRules


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPreview:
    """One broker now, at the worst moment of the move (both copies exist), and after."""

    broker: int
    replicas_now: int
    replicas_after: int
    leaders_now: int
    leaders_after: int
    bytes_now: int
    bytes_during: int
    bytes_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """All that an operator should see before confirming."""

    proposal: Proposal
    brokers: tuple[BrokerPreview, ...]
    balance_now: Balance
    balance_after: Balance
    checks: tuple[Check, ...]
    throttle_bytes_per_s: int | None
    is_adaptive: bool
    """Whether the throttle is only the first, and then goes by what brokers have to spare."""
    lowest_bytes_per_s: int | None
    """Of the slowest broker: less than the throttle where somebody else has set one."""
    seconds_min: float | None
    """The soonest that it may be done; null without a throttle."""
    seconds_max: float | None
    """The latest; eight times in ten it is done between the two."""
    spread: SpreadEstimate = NOT_SPREAD
    """Over which time it is begun for producers' sake."""

    @property
    def is_refused(self) -> bool:
        """Whether pre-flight forbids it."""
        return is_refused(self.checks)

    @property
    def throttle_words(self) -> str:
        """``none``, ``50.0 MiB/s a broker``, or ``auto, from 50.0 MiB/s a broker``."""
        if self.throttle_bytes_per_s is None:
            return THROTTLE_NONE
        rate = f"{byte_rate_text(self.throttle_bytes_per_s)} a broker"
        return f"{THROTTLE_AUTO}, from {rate}" if self.is_adaptive else rate

    @property
    def pace_words(self) -> str:
        """``at most 50.0 MiB/s a broker, ≈ 20 s to 1 min``; ``from`` where it adapts."""
        rate = self.throttle_bytes_per_s
        bound = "from" if self.is_adaptive else "at most"
        limit = "without a throttle" if rate is None else f"{bound} {byte_rate_text(rate)} a broker"
        if self.seconds_min is None or self.seconds_max is None:
            return limit
        low, high = (seconds * 1000 for seconds in (self.seconds_min, self.seconds_max))
        return f"{limit}, ≈ {duration_text(low)} to {duration_text(high)}"


class Planning:
    """Plans for one cluster."""

    def __init__(self, admin: ClusterPort) -> None:
        self._admin = admin

    async def topology(self, *, with_traffic: bool = False) -> Topology:
        """The cluster as the planner sees it, with bytes per partition; `with_traffic`: and with
        what producers write, watched for a second."""
        facts = await read_facts(self._admin)
        if with_traffic:
            facts = replace(facts, produced=await measure_growth(self._admin, facts.partitions))
        return topology_of(facts)

    async def plan(self, request: PlanRequest) -> Plan:
        """Alternatives for the cluster as it is now.

        :raises GoalError: the request makes no sense for it.
        :raises KafkaPortError: it could not be read.
        """
        topology = await self.topology(with_traffic=request.goal is Goal.TRAFFIC)
        return plan(topology, request)

    async def by_hand(
        self,
        request: PlanRequest,
        entries: str,
        *,
        base: Proposal = NOTHING,
        leaders: LeaderOrder = LeaderOrder.GIVEN,
    ) -> Plan:
        """`base` with some partitions placed as the entries say (planner.by_hand), judged
        as any other plan.

        :raises HandError: an entry that cannot be.
        :raises KafkaPortError: the cluster could not be read.
        """
        topology = await self.topology()
        edits = parse_edits(entries)
        proposal = edited(topology, base, edits, leaders=leaders, request=request)
        return judged_plan(topology, request, proposal)

    async def proposal(
        self,
        targets: Mapping[TopicPartition, Sequence[int]],
        name: str = "plan",
        made_for: Mapping[TopicPartition, Sequence[int]] | None = None,
    ) -> Proposal:
        """Changes that a reassignment file would make now.

        `made_for`: where the partitions were when the file was made; pre-flight then refuses it
        as stale when they are elsewhere.

        :raises InvalidInputError: a partition does not exist.
        """
        facts = await read_facts(self._admin)
        proposal = proposal_for(facts, targets, name)
        known = made_for or {}
        changes = (replace(c, before=tuple(known.get(c.key, c.before))) for c in proposal.changes)
        return replace(proposal, changes=tuple(changes))

    async def preview(
        self,
        proposal: Proposal,
        *,
        throttle: Throttle = THROTTLE_AUTO,
        rules: WaveRules = USUAL_WAVES,
        throttled_by_us: Collection[int] = (),
    ) -> Preview:
        """Figures now and after, and pre-flight, without changing anything. `throttled_by_us`:
        brokers whose throttle is gone before this begins."""
        facts = await self._facts_of(proposal.changes, throttled_by_us)
        return preview_of(facts, proposal, throttle=throttle, rules=rules)

    async def preview_back(
        self, way: RollbackPlan, throttled_by_us: Collection[int] = ()
    ) -> Preview:
        """Preview of a rollback, as if the operation were cancelled already."""
        facts = await self._facts_of(way.proposal.changes, throttled_by_us)
        facts = replace(facts_of(way.topic_ids, facts), is_settled=way.is_settled)
        if way.is_running:
            facts = as_cancelled(facts, way.proposal.inverse().changes)
        return preview_of(
            facts, way.proposal, throttle=way.throttle, rules=way.waves, rolled_back=way.rolled_back
        )

    async def _facts_of(
        self, changes: tuple[PartitionChange, ...], throttled_by_us: Collection[int]
    ) -> ClusterFacts:
        """All that pre-flight looks at."""
        admin = self._admin
        async with together() as group:
            facts = group.create_task(read_facts(admin, changes=changes))
            produced = group.create_task(measure_produced(admin, changes))
            readers = group.create_task(read_readers(admin.groups, changes))
            backoffs = group.create_task(read_fetch_backoffs(admin, changes))
            standing = group.create_task(
                read_standing_rates(admin, changes, except_on=throttled_by_us)
            )
        return replace(
            facts.result(),
            produced=produced.result(),
            readers=readers.result(),
            fetch_backoff_ms=backoffs.result(),
            standing_rates=standing.result(),
        )


def proposal_for(
    facts: ClusterFacts, targets: Mapping[TopicPartition, Sequence[int]], name: str = "plan"
) -> Proposal:
    """The proposal from the present placement to `targets`.

    :raises InvalidInputError: a partition does not exist.
    """
    for key in sorted(targets):
        if key not in facts.partitions:
            count = sum(known.topic == key.topic for known in facts.partitions)
            words = no_partition_words(*key, count) if count else f"{key} does not exist"
            raise InvalidInputError({"partition": words})
    return proposal_of(name, topology_of(facts), targets)


def resolve_throttle(
    throttle: Throttle,
    changes: Sequence[PartitionChange],
    produced: Mapping[TopicPartition, float] | None = None,
) -> int | None:
    """Bytes per second, or null for none; auto leaves room for what producers write.

    :raises InvalidInputError: neither auto, none nor a rate.
    """
    if throttle == THROTTLE_AUTO:
        return auto_rate(changes, produced or {})
    return fixed_rate(throttle)


def preview_of(
    facts: ClusterFacts,
    proposal: Proposal,
    *,
    throttle: Throttle,
    rules: WaveRules = USUAL_WAVES,
    rolled_back: str | None = None,
) -> Preview:
    """Preview of a proposal on a cluster read before, with today's sizes. What is being reassigned
    already is left out, unless that is all. A rollback shows only what has to move still."""
    asked = proposal.changes
    if rolled_back is None:
        free = tuple(c for c in asked if c.key not in facts.reassigning)
        proposal = replace(proposal, changes=free or asked)
    if rolled_back is not None:
        going = to_go(facts, asked, rolled_back=rolled_back)
        asked = tuple(c for c in asked if not facts.places.is_there(c)) or asked
        proposal = replace(proposal, changes=facts.as_now(going))
    coming = facts.as_now(proposal.changes)
    rate = resolve_throttle(throttle, coming, facts.produced)
    is_adaptive = throttle == THROTTLE_AUTO
    checks = preflight(
        facts,
        asked,
        throttle_bytes_per_s=rate,
        rolled_back=rolled_back,
        is_adaptive=is_adaptive,
        rules=rules,
    )
    waves = waves_now(facts, proposal.changes, rules)
    spread = spread_of(facts, waves, rules)
    takes = expected_seconds(facts, waves, rate, is_adaptive=is_adaptive, spread=spread)
    soonest, latest = takes or (None, None)
    now = topology_of(facts)
    known = set(now.broker_ids)
    keys = {partition.key for partition in now.partitions}
    targets = {
        change.key: change.after
        for change in proposal.changes
        if change.key in keys and known.issuperset(change.after) and change.after
    }
    after = now.with_replicas(targets)
    return Preview(
        proposal=proposal,
        brokers=_broker_previews(now, after, coming),
        balance_now=balance_of(now),
        balance_after=balance_of(after),
        checks=checks,
        throttle_bytes_per_s=rate,
        is_adaptive=is_adaptive,
        lowest_bytes_per_s=lowest_rate(facts, waves, rate),
        seconds_min=soonest,
        seconds_max=latest,
        spread=spread,
    )


def _broker_previews(
    now: Topology, after: Topology, changes: Sequence[PartitionChange]
) -> tuple[BrokerPreview, ...]:
    arriving = bytes_in(changes)
    return tuple(
        BrokerPreview(
            broker=here.broker,
            replicas_now=here.replicas,
            replicas_after=there.replicas,
            leaders_now=here.leaders,
            leaders_after=there.leaders,
            bytes_now=here.bytes,
            bytes_during=here.bytes + arriving.get(here.broker, 0),
            bytes_after=there.bytes,
        )
        for here, there in zip(loads_of(now), loads_of(after), strict=True)
    )
