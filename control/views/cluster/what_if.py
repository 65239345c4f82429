"""Loss of a broker or a rack: partitions that go offline, new leaders, extra load on survivors."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.broker_loss import without_brokers
from control.model.columns import exploded, ints
from control.model.finding import Finding, each_of
from control.model.finding_rules import Evidence, find_all
from control.views import format as text
from control.views.plan_costs import NO_COSTS
from control.views.snapshots.overview import trouble_cell
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables import units
from control.views.tables.brokers import controller_cell
from control.views.tables.cells import count_cell
from control.views.tables.column import Column, Table, column, name_column, worded
from control.views.tables.findings import FindingRow
from control.views.tables.partitions import PARTITIONS
from control.views.tables.query import Page, TableQuery, page_of
from control.views.tables.rows import Cell, Fact, Row, Tone
from control.views.tables.units import Unit

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
    survivors: tuple[Row, ...]
    findings: tuple[FindingRow, ...]
    """What would stand that does not stand now, worst first."""

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The answer in figures."""
        return (
            Fact("offline", self.offline, "Additional partitions without a leader"),
            Fact("under min ISR", self.under_min_isr, "Additional partitions that refuse acks=all"),
            Fact("new leaders", self.new_leaders, "Partitions that it leads now"),
            Fact("replicas out of reach", self.replicas),
            Fact("groups held up", self.groups, "They read a partition that would be offline"),
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
    each = each_of(known)
    before = {it.id: _count(it) for item in each for it in (item, *item.consequences)}
    held_up = _groups_held_up(after)
    return WhatIf(
        loss=loss,
        after=after,
        offline=trouble_cell(then.count("offline") - now.count("offline"), Tone.CRITICAL),
        under_min_isr=trouble_cell(
            then.count("under-min-isr") - now.count("under-min-isr"), Tone.CRITICAL
        ),
        new_leaders=count_cell(_led_by(snapshot, loss)),
        replicas=count_cell(_held_by(snapshot, loss)),
        groups=Cell(
            len(held_up),
            ", ".join(held_up) or "none",
            Tone.CRITICAL if held_up else Tone.FINE,
        ),
        survivors=_survivors(snapshot, after),
        findings=tuple(
            row
            for row, finding in zip(after.finding_rows, after.findings, strict=True)
            if _count(finding) > before.get(finding.id, -1)
        ),
    )


def hit_page(answer: WhatIf, query: TableQuery | None = None) -> Page:
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
    findings = find_all(evidence)
    return replace(snapshot, evidence=evidence, findings=findings, plan_costs=NO_COSTS)


def _count(finding: Finding) -> int:
    """How many things it counts; 0: it counts none."""
    count = finding.facts.get("count")
    return count if isinstance(count, int) else 0


def _survivors(snapshot: OperatorSnapshot, after: OperatorSnapshot) -> tuple[Row, ...]:
    now = {record["broker"]: record for record in snapshot.broker_table.to_pylist()}
    left = [it for it in after.broker_table.to_pylist() if not it["is_fenced"]]
    return SURVIVORS.rows({**it, "now": now[it["broker"]]} for it in left)


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


def _now(id: str, title: str, unit: Unit, source: str = "", *, rank: int = 3) -> Column:  # noqa: A002
    """A column of what a broker carries now."""
    return column(id, title, unit, rank=rank, cell=lambda it: unit.cell(it["now"][source or id]))


def _after_loss(id: str, title: str, unit: Unit, source: str, *, rank: int) -> Column:  # noqa: A002
    """A column of what it would carry then, with the difference."""

    def cell(it: Mapping[str, Any]) -> Cell:
        to_text = text.count_text if unit is units.COUNT else text.byte_rate_text
        return _more(it["now"][source], it[source], to_text)

    return column(id, title, unit, rank=rank, cell=cell)


SURVIVORS: Final = Table(
    name="survivors",
    about="A row per broker that is left after a loss: what it leads now and would lead then",
    key=lambda it: str(it["broker"]),
    path=lambda it: f"brokers/{it['broker']}",
    columns=(
        column("broker", "broker", units.TEXT, "★ the controller", rank=1, cell=controller_cell),
        name_column("rack", "rack", cell=worded(lambda it: it["rack"])),
        _now("leaders", "leads now", units.COUNT, rank=2),
        _after_loss("leaders_after", "would lead", units.COUNT, "leaders", rank=1),
        _now("in_bytes", "in/s now", units.BYTE_RATE, "in_bytes_per_s"),
        _after_loss("in_bytes_after", "in/s then", units.BYTE_RATE, "in_bytes_per_s", rank=1),
        _now("out_bytes", "out/s now", units.BYTE_RATE, "out_bytes_per_s"),
        _after_loss("out_bytes_after", "out/s then", units.BYTE_RATE, "out_bytes_per_s", rank=2),
    ),
)  # fmt: skip
