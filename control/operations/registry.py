"""The registry of operations: one list that feeds keys, help, buttons, forms and confirmations
of both screens.

A form's values are texts by field name, as a screen has them; `parse` checks them all at once
and answers them complete with defaults. What runs is `control.operations.operator.Operator`'s
method of the form's name.
"""

from typing import Final

from control.kafka.producer import ACKS, COMPRESSIONS
from control.lab.partitioners import KeyRule
from control.operations import checks
from control.operations.forms import Confirmation, FieldKind, FormField, OperationForm
from control.planner.by_hand import LeaderOrder
from control.planner.goals import Goal
from control.planner.waves import LeaderTurn, SizeOrder

__all__ = [
    "ADD_PARTITIONS",
    "CONFIGURE_TOPIC",
    "CREATE_TOPIC",
    "DELETE_TOPIC",
    "ELECT",
    "FORMS",
    "PRODUCE",
    "REASSIGN",
    "RESET_OFFSETS",
    "Confirmation",
    "FieldKind",
    "FormField",
    "OperationForm",
    "form_named",
]

_TOPIC: Final = FormField(
    name="topic", label="Topic", kind=FieldKind.TOPIC, is_required=True, check=checks.topic_name
)
_REASON: Final = FormField(name="reason", label="Reason", help="for the journal")

REASSIGN: Final = OperationForm(
    name="reassign",
    key="R",
    title="Reassign partitions",
    help="move replicas to other brokers: plan, preview, run in waves",
    submit_label="Plan",
    confirmation=Confirmation.PREVIEW,
    fields=(
        FormField(
            name="goal",
            label="Goal",
            kind=FieldKind.CHOICE,
            default=Goal.BALANCE.value,
            choices=tuple(goal.value for goal in Goal),
            help="balance · minimal: least data · racks: repair · leaders: no data · …",
        ),
        FormField(name="topics", label="Topics", help="names or patterns with commas; all"),
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
            label="Empty brokers",
            kind=FieldKind.BROKERS,
            help="move everything off these",
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
            label="Replicas each",
            kind=FieldKind.NUMBER,
            help="goal replication: the new factor",
            check=checks.whole(1, 100),
        ),
        FormField(
            name="exclude_brokers",
            label="Leave alone",
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
            label="Not topics",
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
        _REASON,
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

PRODUCE: Final = OperationForm(
    name="produce",
    key="P",
    title="Produce messages",
    help="send test messages and see where they land",
    submit_label="Send",
    confirmation=Confirmation.NONE,
    fields=(
        _TOPIC,
        FormField(
            name="key",
            label="Key",
            help="text; {n} counts; seq, uniform:100, zipf:100 choose; empty: none",
        ),
        FormField(
            name="value",
            label="Value",
            kind=FieldKind.LONG_TEXT,
            default='{"n": {n}}',
            help="{n} {key} {ms} {now} {uuid} {random:1-6} {pad:100}",
        ),
        FormField(name="is_tombstone", label="Tombstone", kind=FieldKind.FLAG, help="null value"),
        FormField(
            name="partition",
            label="Partition",
            kind=FieldKind.NUMBER,
            help="empty: the key rule chooses",
            check=checks.whole(0, checks.PARTITIONS_MAX),
        ),
        FormField(
            name="rule",
            label="Key rule",
            kind=FieldKind.CHOICE,
            default=KeyRule.MURMUR2.value,
            choices=tuple(rule.value for rule in KeyRule),
        ),
        FormField(name="headers", label="Headers", help="name=value, …", check=checks.headers),
        FormField(
            name="count",
            label="Count",
            kind=FieldKind.NUMBER,
            default="1",
            check=checks.whole(1, 10_000_000),
        ),
        FormField(
            name="rate",
            label="Per second",
            kind=FieldKind.NUMBER,
            help="empty: as fast as acknowledged",
            check=checks.positive_number,
        ),
        FormField(
            name="acks",
            label="Acks",
            kind=FieldKind.CHOICE,
            default="all",
            choices=tuple(ACKS),
        ),
        FormField(
            name="compression",
            label="Compression",
            kind=FieldKind.CHOICE,
            default="none",
            choices=COMPRESSIONS,
        ),
    ),
)

CREATE_TOPIC: Final = OperationForm(
    name="create_topic",
    key="n",
    title="Create a topic",
    help="name, partitions, replication factor, configs",
    submit_label="Create",
    confirmation=Confirmation.NONE,
    fields=(
        FormField(name="topic", label="Name", is_required=True, check=checks.topic_name),
        FormField(
            name="partitions",
            label="Partitions",
            kind=FieldKind.NUMBER,
            help="empty: num.partitions of the cluster",
            check=checks.whole(1, checks.PARTITIONS_MAX),
        ),
        FormField(
            name="replication_factor",
            label="Replication factor",
            kind=FieldKind.NUMBER,
            help="empty: default.replication.factor of the cluster",
            check=checks.whole(1, 100),
        ),
        FormField(name="configs", label="Configs", help="name=value, …", check=checks.config_pairs),
    ),
)

ADD_PARTITIONS: Final = OperationForm(
    name="add_partitions",
    key="a",
    title="Add partitions",
    help="keys may land on other partitions afterwards; consumers rebalance",
    submit_label="Add",
    confirmation=Confirmation.PREVIEW,
    fields=(
        _TOPIC,
        FormField(
            name="partitions",
            label="New number",
            kind=FieldKind.NUMBER,
            is_required=True,
            check=checks.whole(1, checks.PARTITIONS_MAX),
        ),
    ),
)

CONFIGURE_TOPIC: Final = OperationForm(
    name="configure_topic",
    key="C",
    title="Configure a topic",
    help="set configs; an empty value removes one",
    submit_label="Change",
    confirmation=Confirmation.PREVIEW,
    fields=(
        _TOPIC,
        FormField(
            name="configs",
            label="Configs",
            help="name=value, …",
            is_required=True,
            check=checks.config_pairs,
        ),
    ),
)

DELETE_TOPIC: Final = OperationForm(
    name="delete_topic",
    key="D",
    title="Delete a topic",
    help="its data is gone for good",
    submit_label="Delete",
    confirmation=Confirmation.TYPED,
    confirm_field="topic",
    fields=(_TOPIC, _REASON),
)

ELECT: Final = OperationForm(
    name="elect",
    key="E",
    title="Elect preferred leaders",
    help="give leadership back to the first replicas",
    submit_label="Elect",
    confirmation=Confirmation.PREVIEW,
    fields=(FormField(name="topics", label="Topics", help="names or patterns; all"),),
)

RESET_OFFSETS: Final = OperationForm(
    name="reset_offsets",
    key="O",
    title="Reset a group's offsets",
    help="the group's consumers must be stopped",
    submit_label="Preview",
    confirmation=Confirmation.TYPED,
    confirm_field="group",
    fields=(
        FormField(name="group", label="Group", kind=FieldKind.GROUP, is_required=True),
        _TOPIC,
        FormField(
            name="to",
            label="To",
            default="latest",
            is_required=True,
            help="earliest, latest, an offset, +N, -N or @MILLISECONDS",
            check=checks.reset_target,
        ),
        _REASON,
    ),
)

FORMS: Final[tuple[OperationForm, ...]] = (
    REASSIGN,
    PRODUCE,
    CREATE_TOPIC,
    ADD_PARTITIONS,
    CONFIGURE_TOPIC,
    DELETE_TOPIC,
    ELECT,
    RESET_OFFSETS,
)


def form_named(name: str) -> OperationForm:
    """A form by name.

    :raises KeyError: there is none.
    """
    for form in FORMS:
        if form.name == name:
            return form
    raise KeyError(name)
