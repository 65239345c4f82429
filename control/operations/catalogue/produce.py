"""Produce test messages: the form and the job that its fields mean.

A run takes time and reports as it goes, so ``OperationSession.produce`` hands out a
``ProduceSession`` in place of an ``Effect``.
"""

from collections.abc import Mapping
from typing import Final

from control.kafka.collector.rights import AclOperation, Lacking
from control.kafka.producer import ACKS, COMPRESSIONS, ProducerOptions
from control.lab.partitioners import KeyRule
from control.lab.session import ProduceJob
from control.operations import checks
from control.operations.catalogue.fields import TOPIC
from control.operations.catalogue.forms import Confirmation, FieldKind, FormField, OperationForm

RIGHTS: Final[Lacking] = ((AclOperation.WRITE, "topic"),)
PRODUCE: Final = OperationForm(
    name="produce",
    key="P",
    title="Produce messages",
    help="send test messages and see where they land",
    submit_label="Send",
    confirmation=Confirmation.NONE,
    fields=(
        TOPIC,
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


def produce_job(fields: Mapping[str, str]) -> ProduceJob:
    """The job of checked values of the produce form."""
    is_tombstone = checks.is_on(fields["is_tombstone"])
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
