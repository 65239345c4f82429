"""Loss of a broker or a rack: partitions that go offline, new leaders, extra load on survivors."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import exploded, ints
from control.model.health import Evidence, find_all
from control.model.loss import without_brokers
from control.views import format as text
from control.views.cluster.overview import trouble_cell
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.column import Column
from control.views.tables.query import PARTITIONS, Page, TableQuery, page_of
from control.views.tables.row_builders import STAR
from control.views.tables.rows import Cell, FindingRow, PartitionRow, Row, Tone

NAMES_MAX: Final = 3
LOSS_KINDS: Final = ("broker", "rack")
"""Names of the view path's query: ``what-if?broker=103``, ``what-if?rack=b``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Brokers that die at once; ``words`` names them as asked for. Of a rack: brokers without one
    may stand there as well, and stay alive in the answer."""

    kind: str
    value: str
    brokers: tuple[int, ...]
    rackless: tuple[int, ...] = field(default=(), compare=False)

    @property
    def words(self) -> str:
        rackless = self.rackless
        ids = text.ids_text(rackless) if len(rackless) <= NAMES_MAX else f"{len(rackless)} brokers"
        return f"{self.kind} {self.value}{f' (rack of {ids} unknown)' if rackless else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivorRow(Row):
    """A broker that is left: what it leads now and would lead then."""

    broker: Cell
    rack: Cell
    leaders: Cell
    leaders_after: Cell
    in_bytes: Cell
    in_bytes_after: Cell
    out_bytes: Cell
    out_bytes_after: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The answer, figures as cells."""

    loss: Loss
    after: OperatorSnapshot
    offline: Cell
    under_min_isr: Cell
    new_leaders: Cell
    replicas: Cell
    groups: Cell
    """Groups that read a partition which would be offline."""
    survivors: tuple[SurvivorRow, ...]
    findings: tuple[FindingRow, ...]
    """What would stand that does not stand now, worst first."""


SURVIVOR_COLUMNS: Final = (
    Column(id="broker", title="broker", why="★ the controller", is_number=False, rank=1),
    Column(id="rack", title="rack", is_number=False, rank=3, is_long=True),
    Column(id="leaders", title="leads now", rank=2),
    Column(id="leaders_after", title="would lead", rank=1),
    Column(id="in_bytes", title="in/s now", rank=3),
    Column(id="in_bytes_after", title="in/s then", rank=1),
    Column(id="out_bytes", title="out/s now", rank=3),
    Column(id="out_bytes_after", title="out/s then", rank=2),
)


def losses(snapshot: OperatorSnapshot) -> tuple[Loss, ...]:
    """Everything that can be asked: each broker, then each rack of several."""
    table = snapshot.broker_table
    ids: list[int] = table["broker"].to_pylist()
    racks: dict[str, list[int]] = {}
    rackless = []
    for broker, rack in zip(ids, table["rack"].to_pylist(), strict=True):
        if rack is None:
            rackless.append(broker)
        else:
            racks.setdefault(rack, []).append(broker)
    return (
        *(Loss(kind="broker", value=str(broker), brokers=(broker,)) for broker in ids),
        *(
            Loss(kind="rack", value=rack, brokers=tuple(held), rackless=tuple(rackless))
            for rack, held in sorted(racks.items())
        ),
    )


def wanted_loss(snapshot: OperatorSnapshot, query: Mapping[str, str]) -> Loss | None:
    """The loss that a view path's query asks for; None: none, or no such broker or rack."""
    return next(
        (loss for loss in losses(snapshot) if query.get(loss.kind) == loss.value),
        None,
    )


def what_if(snapshot: OperatorSnapshot, loss: Loss) -> WhatIf:
    """The cluster without these brokers, beside what it is now."""
    after = _after(snapshot, loss)
    now, then = snapshot.evidence.statuses, after.evidence.statuses
    known = snapshot.findings
    before = {it.identity for item in known for it in (item, *item.consequences)}
    held_up = _groups_held_up(after)
    return WhatIf(
        loss=loss,
        after=after,
        offline=trouble_cell(then.count("offline") - now.count("offline"), Tone.CRITICAL),
        under_min_isr=trouble_cell(
            then.count("under-min-isr") - now.count("under-min-isr"), Tone.CRITICAL
        ),
        new_leaders=_count(_led_by(snapshot, loss)),
        replicas=_count(_held_by(snapshot, loss)),
        groups=Cell(
            len(held_up),
            ", ".join(held_up) or "none",
            Tone.CRITICAL if held_up else Tone.FINE,
        ),
        survivors=_survivors(snapshot, after, loss),
        findings=tuple(
            row
            for row, finding in zip(after.finding_rows, after.findings, strict=True)
            if finding.identity not in before
        ),
    )


def hit_page(answer: WhatIf, query: TableQuery | None = None) -> Page[PartitionRow]:
    """Partitions that would be offline or lack replicas, worst first, as they would be."""
    table = answer.after.partition_table
    brokers = list(answer.loss.brokers)
    row, element = exploded(table["replicas"])
    mask = np.zeros(table.num_rows, dtype=np.bool_)
    mask[row[np.isin(element, brokers)]] = True
    found = table.filter(pa.array(mask))
    # By rank alone, so that equals keep the order of all lists: by name, bookkeeping last.
    hit = found.take(pa.array(np.argsort(ints(found["rank"]), kind="stable")))
    return page_of(hit, PARTITIONS, query or TableQuery())


def _after(snapshot: OperatorSnapshot, loss: Loss) -> OperatorSnapshot:
    left = without_brokers(snapshot.cluster, loss.brokers)
    evidence = Evidence.gather(
        left, now_ms=snapshot.built_ms, fresh=snapshot.evidence.freshness.without(loss.brokers)
    )
    return replace(snapshot, evidence=evidence, findings=find_all(evidence))


def _survivors(
    snapshot: OperatorSnapshot, after: OperatorSnapshot, loss: Loss
) -> tuple[SurvivorRow, ...]:
    now = {record["broker"]: record for record in snapshot.broker_table.to_pylist()}
    rows = []
    for record in after.broker_table.to_pylist():
        broker = record["broker"]
        if record["is_fenced"]:
            continue
        before = now[broker]
        star = STAR if record["is_controller"] else ""
        rows.append(
            SurvivorRow(
                key=str(broker),
                path=f"brokers/{broker}",
                broker=Cell(broker, f"{star}{broker}"),
                rack=Cell(record["rack"], record["rack"] or text.NONE),
                leaders=_count(before["leaders"]),
                leaders_after=_more(before["leaders"], record["leaders"], text.count_text),
                in_bytes=_rate(before["in_bytes_per_s"]),
                in_bytes_after=_more(
                    before["in_bytes_per_s"], record["in_bytes_per_s"], text.byte_rate_text
                ),
                out_bytes=_rate(before["out_bytes_per_s"]),
                out_bytes_after=_more(
                    before["out_bytes_per_s"], record["out_bytes_per_s"], text.byte_rate_text
                ),
            )
        )
    return tuple(rows)


def _more(now: float | None, then: float | None, to_text: text.ToText) -> Cell:
    """The later figure, and by how much it is more: ``60 (+20)``."""
    if now is None or then is None or then <= now:
        return Cell(then, to_text(then))
    return Cell(then, f"{to_text(then)} (+{to_text(then - now)})", Tone.NOTICE)


def _led_by(snapshot: OperatorSnapshot, loss: Loss) -> int:
    leaders = ints(snapshot.partition_table["leader"])
    return int(np.isin(leaders, list(loss.brokers)).sum())


def _held_by(snapshot: OperatorSnapshot, loss: Loss) -> int:
    return int(np.isin(snapshot.evidence.placement.broker, list(loss.brokers)).sum())


def _groups_held_up(after: OperatorSnapshot) -> list[str]:
    """Groups that have committed on a partition without a leader."""
    table = after.commit_table
    offline = table.filter(pc.equal(table["leader"], -1))
    return sorted(pc.unique(offline["group_id"]).to_pylist())


def _count(value: float | None) -> Cell:
    return Cell(value, text.count_text(value))


def _rate(value: float | None) -> Cell:
    return Cell(value, text.byte_rate_text(value))
