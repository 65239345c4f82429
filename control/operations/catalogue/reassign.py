"""Reassign partitions: the form, the plan that its fields ask for, and how to run the plan.

Alternatives are planned first (``OperationSession.plan``); a chosen one is previewed with
pre-flight and submitted to the executor, which reports by events.
"""

from collections.abc import Mapping
from typing import Final

from control.model.ids import TopicPartition
from control.operations import checks
from control.operations.catalogue.fields import REASON
from control.operations.catalogue.forms import Confirmation, FieldKind, FormField, OperationForm
from control.operations.errors import InvalidInputError
from control.planner.by_hand import LeaderOrder
from control.planner.goals import Goal, PlanRequest
from control.planner.waves import USUAL_WAVES, LeaderTurn, SizeOrder, WaveRules

REASSIGN: Final = OperationForm(
    name="reassign",
    key="R",
    title="Reassign partitions",
    help="move replicas to other brokers: plan, preview, run in waves",
    submit_label="Plan",
    confirmation=Confirmation.PREVIEW,
    view="plan",
    fields=(
        FormField(
            name="goal",
            label="Goal",
            kind=FieldKind.CHOICE,
            default=Goal.BALANCE.value,
            choices=tuple(goal.value for goal in Goal),
            help="balance · minimal: least data · racks: repair · leaders: no data · …",
        ),
        FormField(name="topics", label="Topics", help="names or patterns; empty: all"),
        FormField(
            name="partition",
            label="Partition",
            kind=FieldKind.NUMBER,
            help="move just this one of one topic",
            check=checks.whole(0, checks.PARTITIONS_MAX),
        ),
        FormField(
            name="replicas",
            label="To brokers",
            kind=FieldKind.BROKERS,
            help="with a partition: its new replicas, the leader first",
            check=checks.broker_ids,
        ),
        FormField(
            name="by_hand",
            label="By hand",
            kind=FieldKind.LONG_TEXT,
            help="orders-3: 101,102; orders-4: 103,101 (leader first), or Kafka's JSON",
            check=checks.by_hand,
        ),
        FormField(
            name="leader_order",
            label="Leaders",
            kind=FieldKind.CHOICE,
            default=LeaderOrder.GIVEN.value,
            choices=tuple(order.value for order in LeaderOrder),
            help="by hand: as given · keep who leads now · balance",
        ),
        FormField(
            name="remove_brokers",
            label="Decommission brokers",
            kind=FieldKind.BROKERS,
            help="move every replica off these",
            check=checks.broker_ids,
        ),
        FormField(
            name="relieve_brokers",
            label="Relieve disks",
            kind=FieldKind.BROKERS,
            help="goal relieve: down to the mean",
            check=checks.broker_ids,
        ),
        FormField(
            name="replication_factor",
            label="Replication factor",
            kind=FieldKind.NUMBER,
            help="goal replication: the new factor",
            check=checks.whole(1, 100),
        ),
        FormField(
            name="exclude_brokers",
            label="Exclude brokers",
            kind=FieldKind.BROKERS,
            help="brokers that neither lose nor receive",
            check=checks.broker_ids,
        ),
        FormField(
            name="require_racks",
            label="Require racks",
            kind=FieldKind.FLAG,
            help="plan nothing while a broker has no rack",
        ),
        FormField(
            name="exclude_topics",
            label="Exclude topics",
            help="names or patterns that stay",
        ),
        FormField(
            name="partitions",
            label="Only",
            help="just these partitions: orders-3, …",
        ),
        FormField(
            name="keep_partitions",
            label="Keep",
            help="partitions that stay: orders-3, …",
        ),
        FormField(
            name="throttle",
            label="Throttle",
            default="auto",
            help="auto (adapts), none, or a rate: 50MiB",
            check=checks.throttle,
        ),
        FormField(
            name="partitions_per_wave",
            label="Per wave",
            kind=FieldKind.NUMBER,
            default="20",
            help="partitions at a time",
            check=checks.whole(1, 10_000),
        ),
        FormField(
            name="partitions_per_broker",
            label="Per broker",
            kind=FieldKind.NUMBER,
            help="at most so many to or from one broker at a time",
            check=checks.whole(1, 10_000),
        ),
        FormField(
            name="wave_order",
            label="Order",
            kind=FieldKind.CHOICE,
            default=SizeOrder.SMALL.value,
            choices=tuple(order.value for order in SizeOrder),
            help="small or large partitions first",
        ),
        FormField(
            name="leaders_turn",
            label="New leaders",
            kind=FieldKind.CHOICE,
            default=LeaderTurn.ANY.value,
            choices=tuple(turn.value for turn in LeaderTurn),
            help="partitions that get another leader: any time, first or last",
        ),
        FormField(
            name="spread",
            label="Spread",
            default="5m",
            help="over at most so long, so that producers wait less; none",
            check=checks.spread,
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
    "reason",
)
"""Fields of REASSIGN that say how to run a plan, not what to plan: its alternatives stay."""


def plan_request(fields: Mapping[str, str]) -> PlanRequest:
    """What the planner is asked for."""
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
