"""The newest of what was known and what a batch brings: one row per partition. Pure.

    rows of samples, gathered (one per partition) -> met with the state -> replicas merged
        -> who tells of leader and log -> rated -> told

Formulas in words: docs/reference/definitions.md. Arrays of readings and of points are newest first
throughout. What is told in full stays once per partition: the *view* (who leads and follows) and
the *log* (sizes, offsets), each with the broker that told it; of a replica, some numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.arrow_tables import conform, lists_of, one_array
from spark_metrics.figures import log_end
from spark_metrics.figures.column import Column, column, first_of, greatest, where
from spark_metrics.figures.followers import LogEnd, follower_lag
from spark_metrics.figures.lists import Lists
from spark_metrics.figures.rates import leader_rates
from spark_metrics.figures.reached import LogTimes
from spark_metrics.figures.retention import may_be_by_age
from spark_metrics.fold.known_brokers import KnownBrokers
from spark_metrics.fold.leader_readings import reading, with_readings
from spark_metrics.fold.replicas import Replicas, has_any, met_replicas, partition_of
from spark_metrics.keys import key_codes, places_of
from spark_metrics.schema import (
    LOG,
    PARTITION_STATE,
    POINT,
    READING,
    READINGS_MAX,
    START,
    VIEW,
)
from spark_metrics.state.job_state import KnownBroker

MISSING_MS: Final = 5_000
"""How much later than a partition's newest row a replica's broker must have finished a round
without it, before the partition counts as deleted; later still where who told that row has not had
the time to tell it again (``KnownBroker.patience_ms``)."""
_NEVER_BACK_MS: Final = 1 << 61
"""Above this time a broker is unregistered, and its rounds prove nothing."""
KEY: Final = ("cluster", "topic", "partition")
_OF_VIEW: Final = tuple(name for name in VIEW if name not in ("leader", "min_isr"))
_OF_LOG: Final = (
    *(name for name in LOG if name not in ("leader_epoch", "log_points", *READING)),
    *("high_watermark", "log_end_offset", "size_bytes"),
)
_SIZES: Final = ("log_end_offset", "size_bytes")
_STATE: Final = pa.schema([it for it in pa.schema(PARTITION_STATE) if it.name not in KEY])


@dataclass(frozen=True, slots=True, eq=False)
class Met:
    """Rows of a batch beside the state: known partitions first, then new ones."""

    ids: pa.Table
    state: dict[str, Any]
    """Columns of ``schema.PARTITION_STATE``; new partitions have none."""
    rows: pa.Table
    """Columns of ``schema.GATHERED``."""
    source: Any
    """Place of each partition's row in ``rows``; -1: it has none."""

    def held(self, name: str) -> Column:
        return Column(self.state[name])

    def told(self, kind: str, name: str) -> Column:
        """A field of ``view`` or ``log``; unknown where nothing is told in full."""
        of = one_array(self.rows[kind])
        values = pc.struct_field(of, [name])
        return Column(values.take(pa.array(self.source, mask=self.source < 0)))

    def chosen(self, takes: Column, kind: str, *names: str) -> dict[str, Column]:
        """Fields of what is told where it is taken, else of the state."""
        columns = {}
        for name in names:
            held = self.state[name]
            brought = pc.struct_field(one_array(self.rows[kind]), [name])
            both = pa.concat_arrays([held, brought.cast(held.type)])
            own = np.arange(len(held))
            places = np.where(takes.numpy(), len(held) + self.source, own)
            columns[name] = Column(both.take(pa.array(places)))
        return columns


def newest_partitions(rows: pa.Table, state: pa.Table, brokers: Sequence[KnownBroker]) -> pa.Table:
    """One row per partition.

    ``rows``: ``schema.GATHERED``. ``state``: the answer before, as ``schema.PARTITION_STATE``.
    The answer has the columns of ``PARTITIONS`` (only where ``is_partition``), those of the
    state, ``is_fresh``, and beside ``members`` whether each is ``in_sync`` and how many records
    it is ``behind``. Who leads is told by the row of the newest leader epoch, whoever reported it;
    sizes and offsets by the newest row of a leader.
    """
    met = _met(rows, state)
    known_brokers = KnownBrokers(brokers, met.ids["cluster"])
    new_rows = Lists.of(met.rows["rows"]).at(column(pa.array(met.source, mask=met.source < 0)))
    replicas = met_replicas(Lists.of(met.state["members"]), new_rows, known_brokers)
    view = _view(met, replicas)
    log, takes_log, is_same = _log(met, replicas)
    ends = _ends(met, log, takes_log, is_same)
    told_leader = view["told_leader"]
    is_offline = (
        (told_leader < 0)
        | (known_brokers.of("fenced_ms", told_leader) > view["view_ms"])
        | (known_brokers.of("complete_ms", told_leader) > _NEVER_BACK_MS)
    ).is_sure
    rates = leader_rates(ends, is_offline, READINGS_MAX)
    columns: dict[str, Any] = {
        **view,
        **log,
        **rates,
        **_changes_of_isr(met, view["isr"]),
        "is_partition": _is_partition(view, replicas, known_brokers, is_offline),
        "leader": where(is_offline, -1, told_leader),
    }
    answer = {name: it.values for name, it in columns.items()}
    answer |= {name: met.ids[name] for name in KEY}
    answer |= _over_time(met, log, ends, takes_log)
    answer |= {"ends": lists_of(ends.packed(), ends.counts), "members": replicas.members()}
    answer |= _of_replicas(replicas, view, ends)
    return pa.table(answer)


def _met(rows: pa.Table, state: pa.Table) -> Met:
    row_codes, state_codes = key_codes([rows, state], KEY)
    places = places_of(row_codes, state_codes)
    is_new = places < 0
    new = np.flatnonzero(is_new)
    places[is_new] = state.num_rows + np.arange(len(new))
    source = np.full(state.num_rows + len(new), -1)
    source[places] = np.arange(rows.num_rows)
    ids = pa.concat_tables(
        [
            conform(table.select(KEY), pa.schema({it: schema.field(it).type for it in KEY}))
            for schema in (pa.schema(PARTITION_STATE),)
            for table in (state, rows.take(pa.array(new)))
        ]
    )
    held = conform(state.drop_columns(KEY), _STATE) if state.num_rows else _STATE.empty_table()
    grown = pa.concat_tables(
        [held, pa.table([pa.nulls(len(new), it.type) for it in _STATE], schema=_STATE)]
    ).combine_chunks()
    columns = {name: one_array(grown[name]) for name in grown.column_names}
    return Met(ids=ids, state=columns, rows=rows, source=source)


def _takes(
    told: tuple[Column, ...], held: tuple[Column, ...], new: Column, old: Column, replicas: Replicas
) -> Column:
    """Judge whether what is told anew replaces what was known.

    It replaces what the same broker told, and what nobody stands for.

    ``told``, ``held``: figures that decide otherwise, the first first. ``new``, ``old``: places of
    the replicas whose word it is.
    """
    is_full = replicas.columns["is_full"]
    is_later: Column | None = None
    for one, other in reversed(list(zip(told, held, strict=True))):
        is_above = (one > other).is_sure | (other.is_unknown & one.is_known)
        is_equal = one.equals(other).is_sure | (other.is_unknown & one.is_unknown)
        is_later = is_above | (is_equal if is_later is None else is_equal & is_later)
    assert is_later is not None
    is_free = old.is_unknown | is_full.take(old)
    return (is_full.take(new) & (is_free | is_later)).is_sure


def _leads(leader: Column, broker: Column) -> Column:
    """Whether a broker says that it leads, as a number."""
    return Column(leader.equals(broker).values.cast(pa.int8()))


def _view(met: Met, replicas: Replicas) -> dict[str, Column]:
    """Choose who leads and follows, and who told it."""
    broker, told_by = met.held("view_broker"), met.told("view", "broker")
    viewer, new_viewer = replicas.of(broker), replicas.of(told_by)
    leader = met.told("view", "leader")
    takes = _takes(
        (met.told("view", "leader_epoch"), _leads(leader, told_by), met.told("view", "read_ms")),
        (met.held("leader_epoch"), _leads(met.held("told_leader"), broker), met.held("view_ms")),
        new_viewer,
        viewer,
        replicas,
    )
    read_ms = replicas.columns["read_ms"].take(where(takes, new_viewer, viewer))
    min_isr = met.held("min_isr")
    return {
        "view_broker": where(takes, told_by, broker),
        "view_ms": read_ms.or_else(met.held("view_ms")),
        "told_leader": where(takes, leader, met.held("told_leader").or_else(met.held("leader"))),
        **met.chosen(takes, "view", *_OF_VIEW),
        "min_isr": met.told("view", "min_isr").where(takes).or_else(min_isr),
    }


def _log(met: Met, replicas: Replicas) -> tuple[dict[str, Column], Column, Column]:
    """Choose what the log holds and who told it; whether that is new, or the same again.

    Who tells of an orphan knows metadata, not its log: what the last leader said stays.
    """
    broker, told_by = met.held("log_broker"), met.told("log", "broker")
    logger, new_logger = replicas.of(broker), replicas.of(told_by)
    leads, held_leads = met.told("log", "leads"), met.held("log_leads")
    epoch, read_ms = met.told("log", "leader_epoch"), met.told("log", "read_ms")
    takes = _takes(
        (Column(leads.values.cast(pa.int8())), epoch, read_ms),
        (Column(held_leads.values.cast(pa.int8())), met.held("log_epoch"), met.held("read_ms")),
        new_logger,
        logger,
        replicas,
    )
    takes = (takes & (told_by >= 0)).is_sure
    teller = where(takes, new_logger, logger)
    now_leads = where(takes, leads, held_leads)
    log = {
        "log_broker": where(takes, told_by, broker),
        "log_leads": now_leads,
        "log_epoch": where(takes, epoch, met.held("log_epoch")),
        **met.chosen(takes, "log", *_OF_LOG),
        "read_ms": replicas.columns["read_ms"].take(teller).or_else(met.held("read_ms")),
        "is_fresh": replicas.columns["is_fresh"].take(teller).is_sure,
    }
    return log, takes, (replicas.columns["is_same"].take(teller) & now_leads).is_sure


def _ends(met: Met, log: dict[str, Column], takes: Column, is_same: Column) -> Lists:
    """The leader's readings; those of another leader are forgotten."""
    before = Lists.of(met.state["ends"])
    told_by, broker = met.told("log", "broker"), met.held("log_broker")
    is_another = takes & ~told_by.equals(broker).is_sure
    before = Lists(before.items, before.starts, np.where(is_another.numpy(), 0, before.counts))
    full = {name: met.told("log", name) for name in READING}
    last = {name: before.field(name).item(0) for name in ("broker_epoch", "bytes_in", "bytes_out")}
    same = {
        **{name: where(takes, full[name], last[name]) for name in last},
        **{name: log[name] for name in ("read_ms", "high_watermark", *_SIZES)},
    }
    is_full = met.told("log", "leads") & told_by.equals(log["log_broker"])
    return with_readings(
        before,
        same=reading(same),
        is_same=is_same.numpy(),
        full=reading(full),
        is_full=is_full.is_sure.numpy(),
    )


def _is_partition(
    view: dict[str, Column], replicas: Replicas, brokers: KnownBrokers, is_offline: Column
) -> Column:
    """Whether it still exists; of an orphan metadata alone says so, once it was told of it."""
    assigned = Lists.of(view["replicas"].values)
    partition, ids = partition_of(assigned), Column(assigned.packed())
    count = len(assigned.counts)
    lost_ms = brokers.of("lost_ms", ids, partition).or_else(0)
    has_lost_ms = np.zeros(count, np.int64)
    np.maximum.at(has_lost_ms, partition, lost_ms.numpy())
    since_ms = column(pa.array(has_lost_ms, mask=assigned.counts == 0))
    broker = replicas.columns["broker"]
    is_told = replicas.any_of(broker < 0)
    is_orphan = (
        (brokers.orphans_heard_ms > 0)
        & (is_offline | ~replicas.any_of(broker >= 0))
        & (since_ms < _NEVER_BACK_MS)
    )
    complete_ms = brokers.of("complete_ms", ids, partition)
    patience_ms = greatest(brokers.of("patience_ms", view["view_broker"]).or_else(0), MISSING_MS)
    missing_ms = (view["view_ms"] + patience_ms).take(column(partition))
    is_missing = (
        replicas.places(partition, ids).is_unknown
        & (complete_ms >= missing_ms)
        & (complete_ms <= _NEVER_BACK_MS)
    )
    is_deleted = column(assigned.counts > replicas.counts) & has_any(partition, is_missing, count)
    return first_of(
        (is_orphan, is_told | (since_ms + MISSING_MS >= brokers.orphans_heard_ms)),
        otherwise=column(replicas.counts > 0) & ~is_deleted,
    )


def _changes_of_isr(met: Met, isr: Column) -> dict[str, Column]:
    """How often the ISR was seen to lose and to win members."""
    before, after = Lists.of(met.state["isr"]), Lists.of(isr.values)
    was_told = (met.held("isr").is_known & isr.is_known).numpy()
    ids = _ids(before), _ids(after)
    is_same = ids[0].equals(ids[1])
    changes = {}
    for name, these, (of_these, of_others) in (
        ("isr_shrinks", before, ids),
        ("isr_expands", after, ids[::-1]),
    ):
        changed = np.zeros(len(was_told), np.int64)
        if not is_same:
            is_in = pc.is_in(of_these, of_others).to_numpy(zero_copy_only=False)
            changed[partition_of(these)[~is_in]] = 1
        changes[name] = met.held(name).or_else(0) + column(changed * was_told)
    return changes


def _ids(lists: Lists) -> Any:
    """A number for each broker of each list."""
    return pa.array(partition_of(lists) * (1 << 33) + lists.packed().to_numpy(zero_copy_only=False))


def _over_time(met: Met, log: dict[str, Column], ends: Lists, takes: Column) -> dict[str, Any]:
    """Update the memory of the log over time."""
    end = ends.field("high_watermark").item(0)
    points = Lists.of(met.state["points"])
    after = log_end.with_newest(
        {name: points.field(name) for name in POINT},
        now_ms=ends.field("read_ms").item(0),
        end=end,
        is_new=log["is_fresh"],
    )
    records_before = Lists.of(met.state["log_points"])
    begins_anew = end < records_before.item(records_before.counts - 2)
    is_told = takes & met.told("log", "log_points").is_known
    (log_points,) = met.chosen(is_told, "log", "log_points").values()
    keeps = column(np.arange(len(end))).where(is_told | ~begins_anew.is_sure)
    items = [after.ms, after.offset, after.error_ms]
    as_points = lists_of(pa.StructArray.from_arrays(items, list(POINT)), after.counts)
    points, records = Lists.of(as_points), log_points.take(keeps).values
    times, offsets, errors = (points.field(name) for name in POINT)
    log_times = LogTimes(times, offsets, errors, Lists.of(records))
    return {
        "points": as_points,
        "log_points": records,
        "log_starts": _starts(met, log, ends, log_times),
    }


def _starts(met: Met, log: dict[str, Column], ends: Lists, times: LogTimes) -> pa.ListArray:
    """Where the log began, with where it begins now."""
    before = Lists.of(met.state["log_starts"])
    start, now_ms = log["log_start_offset"], ends.field("read_ms").item(0)
    end = ends.field("high_watermark").item(0)
    moved = np.flatnonzero((start > before.field("offset").item(0)).is_sure.numpy())
    if len(moved):
        at = column(moved)
        age_ms = now_ms.take(at) - times.at(at).reached(start.take(at)).ms
        by_age = np.zeros(len(start), bool)
        by_age[moved] = may_be_by_age(age_ms, log["retention_ms"].take(at)).numpy()
        end = end.where(~column(by_age))
    after = log_end.with_start(
        {name: before.field(name) for name in START},
        now_ms=now_ms,
        start=start,
        end=end,
        is_new=log["is_fresh"],
    )
    items = pa.StructArray.from_arrays([after.ms, after.offset, after.end], list(START))
    return lists_of(items, after.counts)


def _of_replicas(replicas: Replicas, view: dict[str, Column], ends: Lists) -> dict[str, Any]:
    """Tell whether each replica is in sync, and how many records it is behind."""
    broker, of = replicas.columns["broker"], column(replicas.partition)
    isr = Lists.of(view["isr"].values)
    key = replicas.partition * (1 << 33) + broker.numpy()
    in_sync = pc.is_in(pa.array(key), _ids(isr))
    is_known = view["isr"].is_known.take(of)
    lists = ends.at(of)
    behind = follower_lag(
        [
            LogEnd(replicas.columns[ms], replicas.columns[end])
            for ms, end in (
                ("read_ms", "log_end_offset"),
                ("before_ms", "before_end"),
                ("oldest_ms", "oldest_end"),
            )
        ],
        broker.equals(view["told_leader"].take(of)),
        times=lists.field("read_ms"),
        ends=lists.field("log_end_offset"),
    )
    return {
        "in_sync": replicas.lists(Column(in_sync).where(is_known).values),
        "behind": replicas.lists(behind.values),
    }
