"""Reassign partitions: the form, the plan that its fields ask for, and how to run the plan.

Alternatives are planned first (``OperationSession.plan``); a chosen one is previewed with
pre-flight and submitted to the executor, which reports by events.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar, Final, Self

from control.kafka.acl import Lacking
from control.kafka.admin.reassignments import REASSIGN_RIGHTS
from control.model.ids import TopicPartition
from control.model.units import bytes_text, counted
from control.move.check import Verdict
from control.move.conflicts import check_others
from control.move.throttle import THROTTLE_AUTO, THROTTLE_NONE, Throttle
from control.move.window import (
    MoveWindow,
    parse_day_time,
    window_check,
    zone_named,
)
from control.move.yields import NEVER_YIELDS, YieldMode, YieldRules
from control.operations import checks
from control.operations.catalogue.fields import REASON
from control.operations.catalogue.forms import Confirmation, FieldKind, FormField, OperationForm
from control.operations.catalogue.operation import (
    Change,
    Done,
    Effect,
    Operation,
    OperationContext,
)
from control.operations.errors import ConflictError, InvalidInputError, StalePreviewError
from control.operations.executor.window_watch import local_zone, now_ms
from control.operations.reassignment.planning import Preview
from control.operations.reassignment.preflight import failures
from control.operations.reassignment.preview import whole_preview
from planner.by_hand import NOTHING, LeaderOrder
from planner.goals import Goal, PlanRequest
from planner.proposal import Proposal
from planner.waves import USUAL_WAVES, LeaderTurn, SizeOrder, WaveRules


class Task(StrEnum):
    """Purpose of a reassignment: the first choice of its form."""

    REBALANCE = "rebalance"
    DECOMMISSION = "decommission"
    ADD_BROKERS = "add_brokers"
    REPLICATION = "replication"
    BY_HAND = "by_hand"
    RELIEVE = "relieve"


TASK_LABELS: Final = {
    Task.REBALANCE: "Rebalance",
    Task.DECOMMISSION: "Decommission brokers",
    Task.ADD_BROKERS: "Add brokers",
    Task.REPLICATION: "Change replication factor",
    Task.BY_HAND: "Move by hand",
    Task.RELIEVE: "Relieve a disk",
}
_GOALS: Final = {
    Task.ADD_BROKERS: Goal.MINIMAL,
    Task.REPLICATION: Goal.REPLICATION,
    Task.RELIEVE: Goal.RELIEVE,
}
"""Goals of the tasks that leave nothing to choose."""
_BALANCES: Final = tuple(it.value for it in Goal if it not in {Goal.REPLICATION, Goal.RELIEVE})
_PLANNED: Final = tuple(task.value for task in Task if task is not Task.BY_HAND)


def with_task(values: Mapping[str, str]) -> Mapping[str, str]:
    """The form's values with the task that they imply, where they name none."""
    if values.get("task"):
        return values
    goal = values.get("goal", "")
    if any(values.get(name) for name in ("partition", "replicas", "by_hand")):
        task = Task.BY_HAND
    elif goal == Goal.REPLICATION or values.get("replication_factor"):
        task = Task.REPLICATION
    elif goal == Goal.RELIEVE or values.get("relieve_brokers"):
        task = Task.RELIEVE
    else:
        brokers = {"remove_brokers": Task.DECOMMISSION, "add_brokers": Task.ADD_BROKERS}
        named = (task for name, task in brokers.items() if values.get(name))
        task = next(named, Task.REBALANCE)
    found = {**values, "task": task.value}
    return {**found, "goal": Goal.BALANCE.value} if task in _GOALS else found


REASSIGN: Final = OperationForm(
    name="reassign",
    key="R",
    title="Reassign partitions",
    help="move replicas to other brokers: plan, preview, run in waves",
    submit_label="Plan",
    confirmation=Confirmation.PREVIEW,
    view="plan",
    chooser="task",
    complete=with_task,
    fields=(
        FormField(
            name="task",
            label="Goal",
            kind=FieldKind.CHOICE,
            default=Task.REBALANCE.value,
            choices=tuple(task.value for task in Task),
            choice_labels=tuple(TASK_LABELS[task] for task in Task),
        ),
        FormField(
            name="goal",
            label="Balance",
            kind=FieldKind.CHOICE,
            default=Goal.BALANCE.value,
            choices=_BALANCES,
            help="minimal: least data · racks: repair only · leaders: no data",
            only_for=(Task.REBALANCE, Task.DECOMMISSION),
        ),
        FormField(
            name="remove_brokers",
            label="Decommission brokers",
            kind=FieldKind.BROKERS,
            help="move every replica off these",
            is_required=True,
            check=checks.broker_ids,
            only_for=(Task.DECOMMISSION,),
        ),
        FormField(
            name="add_brokers",
            label="Add brokers",
            kind=FieldKind.BROKERS,
            help="the new ones, which must be ready for replicas; empty: all that are registered",
            check=checks.broker_ids,
            only_for=(Task.ADD_BROKERS,),
        ),
        FormField(
            name="replication_factor",
            label="Replication factor",
            kind=FieldKind.NUMBER,
            help="the new factor",
            is_required=True,
            check=checks.whole(1, checks.FACTOR_MAX),
            only_for=(Task.REPLICATION,),
        ),
        FormField(
            name="relieve_brokers",
            label="Relieve disks",
            kind=FieldKind.BROKERS,
            help="brokers whose bytes go down to the mean",
            is_required=True,
            check=checks.broker_ids,
            only_for=(Task.RELIEVE,),
        ),
        FormField(
            name="topics",
            label="Topics",
            help="names or patterns; empty: all",
            section="Scope",
        ),
        FormField(
            name="partition",
            label="Partition",
            kind=FieldKind.NUMBER,
            help="move just this one of one topic",
            check=checks.whole(0, checks.PARTITIONS_MAX),
            section="Scope",
            only_for=(Task.BY_HAND,),
        ),
        FormField(
            name="replicas",
            label="To brokers",
            kind=FieldKind.BROKERS,
            help="with a partition: its new replicas, the leader first",
            check=checks.broker_ids,
            section="Scope",
            only_for=(Task.BY_HAND,),
        ),
        FormField(
            name="by_hand",
            label="By hand",
            kind=FieldKind.LONG_TEXT,
            help="orders-3: 101,102; orders-4: 103,101 (leader first), or Kafka's JSON",
            check=checks.by_hand,
            section="Scope",
            only_for=(Task.BY_HAND,),
        ),
        FormField(
            name="leader_order",
            label="Leaders",
            kind=FieldKind.CHOICE,
            default=LeaderOrder.GIVEN.value,
            choices=tuple(order.value for order in LeaderOrder),
            help="as given · keep who leads now · balance",
            section="Scope",
            only_for=(Task.BY_HAND,),
        ),
        FormField(
            name="exclude_brokers",
            label="Exclude brokers",
            kind=FieldKind.BROKERS,
            help="brokers that neither lose nor receive",
            check=checks.broker_ids,
            section="Limits",
            only_for=_PLANNED,
        ),
        FormField(
            name="require_racks",
            label="Require racks",
            kind=FieldKind.FLAG,
            help="plan nothing while a broker has no rack",
            section="Limits",
            only_for=_PLANNED,
        ),
        FormField(
            name="exclude_topics",
            label="Exclude topics",
            help="names or patterns of topics that stay",
            section="Limits",
            only_for=_PLANNED,
        ),
        FormField(
            name="partitions",
            label="Only",
            help="just these partitions: orders-3, …",
            section="Limits",
            only_for=_PLANNED,
        ),
        FormField(
            name="keep_partitions",
            label="Keep",
            help="partitions that stay: orders-3, …",
            section="Limits",
            only_for=_PLANNED,
        ),
        FormField(
            name="throttle",
            label="Throttle",
            default="auto",
            help="auto (adapts), none, or a rate: 50MiB",
            check=checks.throttle,
            section="Pace",
        ),
        FormField(
            name="partitions_per_wave",
            label="Per wave",
            kind=FieldKind.NUMBER,
            default="20",
            help="partitions at a time",
            check=checks.whole(1, 10_000),
            section="Pace",
        ),
        FormField(
            name="partitions_per_broker",
            label="Per broker",
            kind=FieldKind.NUMBER,
            help="to or from one broker at a time, at most",
            check=checks.whole(1, 10_000),
            section="Pace",
        ),
        FormField(
            name="wave_order",
            label="Order",
            kind=FieldKind.CHOICE,
            default=SizeOrder.SMALL.value,
            choices=tuple(order.value for order in SizeOrder),
            help="small or large partitions first",
            section="Pace",
        ),
        FormField(
            name="leaders_turn",
            label="New leaders",
            kind=FieldKind.CHOICE,
            default=LeaderTurn.ANY.value,
            choices=tuple(turn.value for turn in LeaderTurn),
            help="partitions that get another leader: any time, first or last",
            section="Pace",
        ),
        FormField(
            name="spread",
            label="Spread",
            default="5m",
            help="longest time until the last partition begins, to spare producers; or none",
            check=checks.spread,
            section="Pace",
        ),
        FormField(
            name="yield_to_consumers",
            label="Yield to consumers",
            kind=FieldKind.CHOICE,
            default=NEVER_YIELDS.mode.value,
            choices=tuple(mode.value for mode in YieldMode),
            help="while groups that read what moves fall behind: pause, or lower the throttle",
            section="Pace",
        ),
        FormField(
            name="yield_after",
            label="Yield after",
            default="30s",
            help="a group falls behind whose oldest unread record is older",
            check=checks.yield_time,
            section="Pace",
        ),
        FormField(
            name="yield_at_most",
            label="Yield at most",
            default="10m",
            help="then the move goes on, whoever is behind",
            check=checks.yield_time,
            section="Pace",
        ),
        FormField(
            name="start",
            label="Start",
            help="waves begin from this time of day on: 01:00; empty: at any time",
            check=checks.day_time,
            section="Pace",
        ),
        FormField(
            name="until",
            label="Until",
            help="no wave begins from this time of day on: 05:00; it goes on the next night",
            check=checks.day_time,
            section="Pace",
        ),
        REASON,
    ),
)

RUN_FIELDS: Final = (
    "throttle",
    "partitions_per_wave",
    "partitions_per_broker",
    "wave_order",
    "leaders_turn",
    "spread",
    "yield_to_consumers",
    "yield_after",
    "yield_at_most",
    "start",
    "until",
    "reason",
)
"""Fields of REASSIGN that say how to run a plan, not what to plan: its alternatives stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassign(Operation):
    """Run a plan: the executor moves its partitions in waves."""

    FORM: ClassVar[OperationForm] = REASSIGN
    RIGHTS: ClassVar[Lacking] = REASSIGN_RIGHTS
    IS_JOURNALED_BY_BUS: ClassVar[bool] = True

    proposal: Proposal = NOTHING
    throttle: Throttle = THROTTLE_AUTO
    waves: WaveRules = USUAL_WAVES
    yields: YieldRules = NEVER_YIELDS
    window: MoveWindow | None = None

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """How a form's checked fields run a plan; ``of_plan`` adds the plan.

        :raises InvalidInputError: a window that never opens or closes.
        """
        return cls(
            throttle=fields["throttle"],
            waves=wave_rules(fields),
            yields=yield_rules(fields),
            window=move_window(fields),
            reason=fields["reason"],
        )

    @classmethod
    def of_plan(cls, proposal: Proposal, values: Mapping[str, str]) -> Self:
        """Run a chosen alternative as the form says.

        :raises InvalidInputError: a wrong field.
        """
        return replace(cls.of(REASSIGN.parse(values)), proposal=proposal)

    @property
    def what(self) -> str:
        """In refusals."""
        return "the reassignment"

    def check(self) -> None:
        """:raises InvalidInputError: it is to lower a throttle that it does not have."""
        if self.yields.mode is YieldMode.SLOW and self.throttle == THROTTLE_NONE:
            reason = "slow lowers the throttle, and there is none: take pause, or a throttle"
            raise InvalidInputError({"yield_to_consumers": reason})

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """Figures now and after, and pre-flight; also where the bus does not answer."""
        review = await whole_preview(
            context.planning,
            context.moves,
            self.proposal,
            site=context.site,
            throttle=self.throttle,
            rules=self.waves,
        )
        if self.window is not None:
            told = window_check(self.window, review.seconds_max, now_ms=now_ms())
            review = replace(review, checks=(*review.checks, told))
        return self.reviewed(review)

    def reviewed(self, review: Preview) -> Effect[Self]:
        """The effect of running it, with its review: without what that leaves out."""
        proposal = review.proposal
        moved = counted(proposal.moved_replicas, "replica")
        words = f"Move {moved}, {bytes_text(proposal.moved_bytes)}, {review.pace_words}?"
        count = len(proposal.changes)
        refused = f"pre-flight refuses: {failures(review.checks)}"
        return Effect(
            command=replace(self, proposal=proposal),
            changes=(Change("partitions", None, count, words),) if count else (),
            notes=(f"Throttle: {review.throttle_words}",),
            review=review,
            refusal=ConflictError(refused) if review.is_refused else None,
        )

    async def require_fresh(self, context: OperationContext, facts: Hashable) -> None:
        """Ask the bus for moves of others, and the cluster where these partitions lie.

        :raises ConflictError: somebody else moves one of them.
        :raises StalePreviewError: one of them lies elsewhere by now.
        """
        await context.moves.require_answer()
        states = await context.moves.list()
        others = check_others(states, self.proposal.changes, site=context.site)
        if others.verdict is Verdict.FAIL:
            raise ConflictError(others.reason)
        topics = await context.admin.topics(sorted({it.topic for it in self.proposal.changes}))
        lies_on = {it.key: tuple(it.replicas) for topic in topics for it in topic.partitions}
        for change in self.proposal.changes:
            now = lies_on.get(change.key, ())
            if now != change.before:
                where = f"is on {list(now)} by now, not on {list(change.before)}"
                raise StalePreviewError(self.what, f"{change.key} {where}")

    async def perform(self, context: OperationContext) -> Done:
        """Submit it to the executor."""
        move = await context.moves.submit_reassign(
            self.proposal,
            bootstrap=context.site.bootstrap,
            cluster_id=(await context.admin.describe_cluster()).cluster_id,
            throttle=self.throttle,
            waves=self.waves,
            yields=self.yields,
            window=self.window,
            reason=self.reason,
            confirmed=context.confirmed,
        )
        return Done(words=f"submitted {move}", view="move", params={"move": move})


def plan_request(fields: Mapping[str, str]) -> PlanRequest:
    """The request to the planner that the fields make."""
    return PlanRequest(
        goal=_GOALS.get(Task(fields["task"])) or Goal(fields["goal"]),
        topics=_names(fields["topics"]),
        partitions=_names(fields["partitions"]),
        exclude_topics=_names(fields["exclude_topics"]),
        keep_partitions=_names(fields["keep_partitions"]),
        add_brokers=_ids(fields["add_brokers"]),
        remove_brokers=_ids(fields["remove_brokers"]),
        relieve_brokers=_ids(fields["relieve_brokers"]),
        exclude_brokers=_ids(fields["exclude_brokers"]),
        replication_factor=int(fields["replication_factor"] or 0) or None,
        require_racks=checks.is_on(fields["require_racks"]),
    )


def wave_rules(fields: Mapping[str, str]) -> WaveRules:
    """How the plan is run."""
    return WaveRules(
        partitions=int(fields["partitions_per_wave"] or USUAL_WAVES.partitions),
        per_broker=int(fields["partitions_per_broker"] or 0) or None,
        order=SizeOrder(fields["wave_order"]),
        leaders=LeaderTurn(fields["leaders_turn"]),
        spread_s=checks.spread_seconds(fields["spread"]) or 0.0,
    )


def yield_rules(fields: Mapping[str, str]) -> YieldRules:
    """When it yields to consumers."""
    return YieldRules(
        mode=YieldMode(fields["yield_to_consumers"]),
        behind_s=checks.spread_seconds(fields["yield_after"]) or NEVER_YIELDS.behind_s,
        at_most_s=checks.spread_seconds(fields["yield_at_most"]) or NEVER_YIELDS.at_most_s,
    )


def move_window(fields: Mapping[str, str]) -> MoveWindow | None:
    """Hours of the day in which its waves begin, by the clock of this machine; null: at any time.

    :raises InvalidInputError: half a window, one of no length, or no time zone.
    """
    start, until = (parse_day_time(fields[name]) for name in ("start", "until"))
    if start is None and until is None:
        return None
    if start is None or until is None:
        lacks = "start" if start is None else "until"
        raise InvalidInputError({lacks: "a window has a start and an end: 01:00 until 05:00"})
    if start == until:
        raise InvalidInputError({"until": "the window has no length: take another end than start"})
    try:
        return MoveWindow(start=start, until=until, zone=zone_named(local_zone()))
    except ValueError as error:
        raise InvalidInputError({"start": f"{error}: set TZ, such as Europe/Berlin"}) from error


def one_partition(fields: Mapping[str, str]) -> TopicPartition:
    """The one partition of a form that names it.

    :raises InvalidInputError: it names no single topic, or no brokers.
    """
    topics = _names(fields["topics"])
    if len(topics) != 1:
        raise InvalidInputError({"topics": "name the one topic whose partition moves"})
    if not fields["replicas"]:
        raise InvalidInputError({"replicas": "name the brokers it moves to, the leader first"})
    return TopicPartition(topics[0], int(fields["partition"]))


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in checks.split_pairs(text))


def _names(text: str) -> tuple[str, ...]:
    return tuple(checks.split_pairs(text))
