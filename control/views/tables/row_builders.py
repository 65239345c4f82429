"""From one record of a table to one row of cells. Each function takes what ``to_pylist`` gives."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from control.model.command_line import typed
from control.model.findings import Finding
from control.model.health import DISK_CRITICAL_PERCENT, DISK_WARNING_PERCENT, SKEW_PERCENT_MAX
from control.model.ids import path_segment
from control.model.status import (
    BEYOND,
    BROKER_SEVERITIES,
    FINE,
    GROUP_SEVERITIES,
    NOT_KNOWN,
    OK,
    PARTITION_SEVERITIES,
    UNJUDGED,
)
from control.views import format as text
from control.views.tables.arrow_tables import NEVER_MS
from control.views.tables.rows import (
    TONE_OF,
    BrokerRow,
    Cell,
    FindingRow,
    GroupPartitionRow,
    GroupRow,
    PartitionRow,
    ReplicaRow,
    SegmentRow,
    Tone,
    TopicRow,
)

Record = Mapping[str, Any]

STAR: Final = "★ "
SHARE_GROUP: Final = "share"
DAY_MS: Final = 86_400_000.0
YEAR_MS: Final = 365 * DAY_MS
SEGMENT_COUNT_WHY: Final = "n/a: only brokers of ours, or JMX, tell the number of segments"


def count_cell(value: float | None) -> Cell:
    """A whole number."""
    return Cell(value, text.count_text(value))


def bytes_cell(value: float | None, *, estimated: bool = False) -> Cell:
    """A size."""
    return Cell(value, text.bytes_text(value, estimated=estimated))


def byte_rate_cell(value: float | None) -> Cell:
    """Bytes per second."""
    return Cell(value, text.byte_rate_text(value))


def record_rate_cell(value: float | None) -> Cell:
    """Records per second."""
    return Cell(value, text.record_rate_text(value))


def text_cell(value: str | None, *, missing: str = text.NA) -> Cell:
    """A word as it is; ``missing`` where there is none."""
    return Cell(value, value if value else missing)


def lag_cell(value: float | None, *, has_group: bool = True) -> Cell:
    """No group: there is no lag (–). A group without a figure: n/a."""
    if value is None and not has_group:
        return Cell(None, text.NONE, Tone.MUTED)
    return count_cell(value)


def velocity_cell(value: float | None, lag: float | None) -> Cell:
    """How fast lag grows; within the dead band it is steady."""
    if value is None:
        return Cell(None, text.NA if lag else text.NONE, Tone.MUTED)
    if abs(value) < 1:
        return Cell(value, "steady")
    return Cell(
        value, text.signed_record_rate_text(value), Tone.WARNING if value > 0 else Tone.FINE
    )


def clears_cell(value: float | None, status: str) -> Cell:
    """When lag will be gone. A group that keeps up has nothing to clear: some lag is always
    on its way."""
    if value is None:
        return Cell(None, text.NA, Tone.MUTED)
    if value == 0:
        return Cell(0.0, "now")
    if value == NEVER_MS:
        if status == FINE or status in UNJUDGED:
            return Cell(value, text.NONE, Tone.MUTED)
        return Cell(value, "never", Tone.WARNING)
    return Cell(value, text.duration_text(value, estimated=True))


def loses_cell(value: float | None, lag: float | None) -> Cell:
    """When retention deletes what the group has not read; a warning within a day, critical
    within an hour. Where nothing waits, nothing can be lost (–)."""
    if value is None or not lag:
        return Cell(None, text.NA if lag else text.NONE, Tone.MUTED)
    if value <= 0:
        return Cell(0.0, "now", Tone.CRITICAL)
    tone = Tone.PLAIN
    if value < DAY_MS:
        tone = Tone.CRITICAL if value < DAY_MS / 24 else Tone.WARNING
    return Cell(value, _coarse(value), tone)


def lag_time_cell(value: float | None) -> Cell:
    """Lag in time, always an estimate."""
    estimated = value is not None and value > 0
    return Cell(value, text.duration_text(value, estimated=estimated))


def status_cell(word: str) -> Cell:
    """A partition's or topic's status, sorted by how bad it is."""
    tone = Tone.MUTED if word == NOT_KNOWN else TONE_OF[PARTITION_SEVERITIES[word]]
    return Cell(list(PARTITION_SEVERITIES).index(word), word, tone)


def group_status_cell(word: str) -> Cell:
    """A group's status, sorted by how bad it is; that there is no verdict looks like none."""
    tone = Tone.MUTED if word in UNJUDGED else TONE_OF[GROUP_SEVERITIES[word]]
    return Cell(list(GROUP_SEVERITIES).index(word), word, tone)


def isr_short_cell(short_ms: float | None, *, is_at_least: bool) -> Cell:
    """For how long an ISR has been short, or that it is whole (–)."""
    if short_ms is None:
        return Cell(None, text.NONE, Tone.MUTED)
    at_least = text.AT_LEAST if is_at_least else ""
    return Cell(short_ms, f"{at_least}{text.duration_text(short_ms)}", Tone.WARNING)


def leader_cell(leader: int, *, is_preferred: bool) -> Cell:
    """The leader's id, with a star when it is the preferred one."""
    if leader < 0:
        return Cell(leader, "none", Tone.CRITICAL)
    return Cell(leader, f"{STAR if is_preferred else ''}{leader}")


def skew_cell(value: float) -> Cell:
    """Distance from the mean in percent."""
    tone = Tone.WARNING if abs(value) > SKEW_PERCENT_MAX else Tone.PLAIN
    return Cell(value, text.signed_percent_text(value), tone)


def disk_cell(used_percent: float | None) -> Cell:
    """Used share of a disk."""
    tone = Tone.PLAIN
    if used_percent is not None and used_percent >= DISK_WARNING_PERCENT:
        tone = Tone.CRITICAL if used_percent >= DISK_CRITICAL_PERCENT else Tone.WARNING
    return Cell(used_percent, text.percent_text(used_percent), tone)


def age_cell(at_ms: int | None, *, now_ms: int) -> Cell:
    """Since when a figure was read."""
    age = None if at_ms is None else max(now_ms - at_ms, 0)
    return Cell(age, text.age_text(age))


def broker_status_cell(word: str) -> Cell:
    """Whether a broker is alive, sorted by how bad it is."""
    return Cell(list(BROKER_SEVERITIES).index(word), word, TONE_OF[BROKER_SEVERITIES[word]])


def broker_row(record: Record) -> BrokerRow:
    """``record`` is a row of ``brokers.broker_table``."""
    broker = record["broker"]
    return BrokerRow(
        key=str(broker),
        path=f"brokers/{broker}",
        broker=Cell(broker, f"{STAR if record['is_controller'] else ''}{broker}"),
        status=broker_status_cell(record["status"]),
        rack=text_cell(record["rack"], missing=text.NONE),
        replicas=count_cell(record["replicas"]),
        leaders=count_cell(record["leaders"]),
        size_bytes=bytes_cell(record["size_bytes"], estimated=record["is_estimated"]),
        in_bytes=byte_rate_cell(record["in_bytes_per_s"]),
        out_bytes=byte_rate_cell(record["out_bytes_per_s"]),
        skew=skew_cell(record["skew_percent"]) if record["skew_percent"] is not None
        else Cell(None, text.NA),
        disk=disk_cell(record["disk_percent"]),
        full_in=full_cell(record["full_ms"]),
        age=Cell(record["age_ms"], text.age_text(record["age_ms"])),
    )  # fmt: skip


def full_cell(full_ms: float | None) -> Cell:
    """``≈ 9 d``: the largest unit is enough; a warning within a day, critical within an hour."""
    if full_ms is None:
        return Cell(None, text.NA)
    if full_ms > YEAR_MS:
        return Cell(full_ms, "> 1 y")
    tone = Tone.PLAIN
    if full_ms < DAY_MS:
        tone = Tone.CRITICAL if full_ms < DAY_MS / 24 else Tone.WARNING
    return Cell(full_ms, _coarse(full_ms), tone)


def _coarse(duration_ms: float) -> str:
    """``≈ 9 d``: an estimate shows its largest unit alone."""
    amount = text.duration_text(duration_ms, estimated=True)
    return " ".join(amount.split(" ")[:3])


def topic_row(record: Record) -> TopicRow:
    """``record`` is a row of ``tables.topic_table``."""
    least, most = record["replicas_count_min"], record["replicas_count_max"]
    factor = str(least) if least == most else f"{least}–{most}"
    return TopicRow(
        key=record["topic"],
        path=f"topics/{record['topic']}",
        topic=text_cell(record["topic"]),
        status=status_cell(record["status"]),
        partitions=count_cell(record["partition_count"]),
        replicas=Cell(most, factor),
        size_bytes=bytes_cell(record["all_bytes_sum"]),
        in_records=record_rate_cell(record["in_records_per_s_sum"]),
        in_bytes=byte_rate_cell(record["in_bytes_per_s_sum"]),
        out_bytes=byte_rate_cell(record["out_bytes_per_s_sum"]),
        lag=lag_cell(record["lag_max"], has_group=False),
    )


def partition_row(record: Record) -> PartitionRow:
    """``record`` is a row of ``tables.partition_table``. Without a leader that is heard of, what
    was read last is shown as such: muted, its age marked."""
    is_old = record["status"] in ("offline", NOT_KNOWN)

    def last_known(cell: Cell) -> Cell:
        return replace(cell, tone=Tone.MUTED) if is_old else cell

    return PartitionRow(
        key=record["name"],
        path=f"topics/{record['topic']}/partitions/{record['partition']}",
        topic=text_cell(record["topic"]),
        partition=Cell(record["partition"], str(record["partition"])),
        status=status_cell(record["status"]),
        leader=leader_cell(record["leader"], is_preferred=record["is_preferred"]),
        replicas=_ids_cell(record["replicas"]),
        isr=_isr_cell(record["isr"], record["replicas"]),
        isr_short=isr_short_cell(record["isr_short_ms"], is_at_least=record["is_at_least"]),
        size_bytes=last_known(bytes_cell(record["size_bytes"])),
        records=last_known(count_cell(record["records"])),
        segments=last_known(count_cell(record["segments"])),
        in_records=record_rate_cell(record["in_records_per_s"]),
        in_bytes=byte_rate_cell(record["in_bytes_per_s"]),
        out_bytes=byte_rate_cell(record["out_bytes_per_s"]),
        lag=lag_cell(record["lag"], has_group=bool(record["groups"])),
        log_start_offset=last_known(count_cell(record["log_start_offset"])),
        high_watermark=last_known(count_cell(record["high_watermark"])),
        age=Cell(
            record["age_ms"],
            text.age_text(record["age_ms"]),
            Tone.WARNING if is_old else Tone.PLAIN,
        ),
    )


def replica_row(record: Record, *, now_ms: int) -> ReplicaRow:
    """``record``: a replica joined with its partition (``pages.replica_rows`` makes it)."""
    role = "leader" if record["is_leader"] else "follower"
    in_sync = record["is_in_sync"]
    lag = 0 if record["is_leader"] else record["follower_lag"]
    return ReplicaRow(
        key=str(record["broker"]),
        path=f"brokers/{record['broker']}",
        broker=Cell(record["broker"], str(record["broker"])),
        rack=text_cell(record["rack"], missing=text.NONE),
        role=Cell(role, f"{STAR if record['is_preferred'] else ''}{role}"),
        in_sync=Cell(int(in_sync), "in sync", Tone.FINE)
        if in_sync
        else Cell(0, "out of sync", Tone.WARNING),
        follower_lag=count_cell(lag),
        log_end_offset=count_cell(record["log_end_offset"]),
        size_bytes=bytes_cell(record["size_bytes"]),
        segments=count_cell(record["segments"]),
        age=age_cell(record["read_ms"], now_ms=now_ms),
    )


def group_row(record: Record) -> GroupRow:
    """``record`` is a row of ``tables.group_table``."""
    group, lag = record["group_id"], record["lag_sum"]
    committed = bool(record["committed_offset_count"])
    return GroupRow(
        key=group,
        path=f"groups/{path_segment(group)}",
        group=text_cell(group),
        status=group_status_cell(record["status"]),
        lag=group_lag_cell(lag, record["group_type"], has_group=committed),
        lag_time=lag_time_cell(record["lag_ms_max"]) if committed else _NOTHING,
        velocity=velocity_cell(record["trend_per_s"], lag) if committed else _NOTHING,
        clears=clears_cell(record["clears_ms"], record["status"]) if committed else _NOTHING,
        loses=loses_cell(record["retention_risk_ms_min"], lag),
        consumed=record_rate_cell(record["consumed_records_per_s_sum"]) if committed else _NOTHING,
        members=count_cell(record["members"]),
        partitions=count_cell(record["partition_count"] or 0),
        topics=text_cell(record["topics"], missing=text.NONE),
        type=text_cell(record["group_type"] or None),
        state=text_cell(record["state"]),
        epoch=epoch_cell(record["group_epoch"], record["assignment_epoch"]),
        assignor=text_cell(record["protocol"] or None, missing=text.NONE),
        rests_on=text_cell(record["rests_on"]),
        status_unknown_because=text_cell(record["unjudged"], missing=text.NONE),
    )


def group_lag_cell(lag: float | None, group_type: str | None, *, has_group: bool) -> Cell:
    """Records behind the start offset of a share group may be delivered already: at most so many
    are left."""
    cell = lag_cell(lag, has_group=has_group)
    is_bound = group_type == SHARE_GROUP and bool(lag)
    return replace(cell, text=f"≤ {cell.text}") if is_bound else cell


def epoch_cell(group: int | None, assignment: int | None) -> Cell:
    """``7``; ``7, assigned 6`` while a rebalance computes the new assignment."""
    if group is None:
        return _NOTHING
    if assignment is None or assignment >= group:
        return Cell(group, text.count_text(group))
    return Cell(group, f"{text.count_text(group)}, assigned {text.count_text(assignment)}",
                Tone.WARNING)  # fmt: skip


def group_partition_row(record: Record) -> GroupPartitionRow:
    """``record`` is a row of ``tables.commit_table``."""
    lag, status = record["lag"], record["status"]
    topic, partition = record["topic"], record["partition"]
    committed = record["committed_offset"]
    # Where nothing is committed, or beyond the log's end, there is no lag to speak of.
    has_lag = committed is not None and status != BEYOND
    return GroupPartitionRow(
        key=f"{record['group_id']} {topic}-{partition}",
        path=f"topics/{topic}/partitions/{partition}",
        group=text_cell(record["group_id"]),
        topic=text_cell(topic),
        partition=Cell(partition, str(partition)),
        status=group_status_cell(status),
        lag=lag_cell(lag, has_group=has_lag),
        readable=count_cell(record["readable"]) if status != BEYOND else _NOTHING,
        lag_time=lag_time_cell(record["lag_ms"]) if has_lag else _NOTHING,
        velocity=velocity_cell(record["lag_records_per_s"], lag) if has_lag else _NOTHING,
        clears=clears_cell(record["clears_ms"], status) if has_lag else _NOTHING,
        loses=loses_cell(record["retention_risk_ms"], lag),
        committed=count_cell(committed)
        if committed is not None
        else Cell(None, "no commit", Tone.MUTED),
        end=count_cell(record["end_offset"]),
        consumed=record_rate_cell(record["consumed_records_per_s"]) if has_lag else _NOTHING,
        member=text_cell(record["member_id"], missing=text.NONE),
        stuck=stuck_cell(record["stuck_ms"], status),
        leader=leader_cell(record["leader"], is_preferred=False),
        status_unknown_because=text_cell(record["unjudged"], missing=text.NONE),
    )


def stuck_cell(value: float | None, status: str) -> Cell:
    """For how long it has not moved, with lag; a warning unless the status says that it may."""
    if value is None:
        return Cell(None, text.NONE, Tone.MUTED)
    return Cell(value, text.duration_text(value), Tone.PLAIN if status == FINE else Tone.WARNING)


def segment_rows(record: Record) -> tuple[SegmentRow, ...]:
    """Rows of a partition's newest segments, oldest first. Empty when unknown."""
    sizes: Sequence[int] = record["segment_bytes"] or ()
    offsets: Sequence[int | None] = record["segment_offsets"] or [None] * len(sizes)
    total = record["segments"] or len(sizes)
    first = total - len(sizes)
    return tuple(
        _segment_row(record, number=number, base=base, size_bytes=size, is_active=number == total)
        for number, (size, base) in enumerate(zip(sizes, offsets, strict=True), start=first + 1)
    )


def finding_row(finding: Finding, *, now_ms: int) -> FindingRow:
    """A finding in words, its figures filled in."""
    return FindingRow(
        key=f"{finding.kind} {finding.label}",
        path=finding.subject,
        severity=Cell(-finding.severity, finding.severity.name.lower(), TONE_OF[finding.severity]),
        label=text_cell(finding.label),
        title=text_cell(text.phrase(finding.title, finding.facts)),
        reason=text_cell(typed(text.phrase(finding.reason, finding.facts))),
        since=Cell(finding.since_ms, f"since {text.clock_text(finding.since_ms, now_ms=now_ms)}")
        if finding.since_ms is not None
        else Cell(None, ""),
        next_step=text_cell(typed(finding.next_step)),
        operation=text_cell(str(finding.operation)),
        consequences=tuple(finding_row(it, now_ms=now_ms) for it in finding.consequences),
    )


def consequence_words(row: FindingRow) -> str:
    """``hence 3 partitions offline, 12 partitions under-replicated``; empty: it has none."""
    words = [in_words(it) for it in row.consequences]
    return f"hence {', '.join(words)}" if words else ""


def in_words(row: FindingRow) -> str:
    """A finding in a few words: its title, with its label where that does not say how many."""
    title = row.title.text
    return title if title[:1].isdigit() else f"{row.label.text} {title}"


_NOTHING: Final = Cell(None, text.NONE, Tone.MUTED)


def _ids_cell(ids: Sequence[int]) -> Cell:
    shown = text.ids_text(ids)
    return Cell(shown, shown)


def _isr_cell(isr: Sequence[int], replicas: Sequence[int]) -> Cell:
    """``3/3``, and which are missing: ``2/3 (−103)``."""
    missing = [item for item in replicas if item not in isr]
    lacks = f" ({', '.join(f'{text.MINUS}{item}' for item in missing)})" if missing else ""
    tone = Tone.WARNING if missing else Tone.PLAIN
    return Cell(len(isr) - len(replicas), f"{len(isr)}/{len(replicas)}{lacks}", tone)


def _segment_row(
    record: Record, *, number: int, base: int | None, size_bytes: int, is_active: bool
) -> SegmentRow:
    path = f"topics/{record['topic']}/partitions/{record['partition']}/segments"
    return SegmentRow(
        key=str(number),
        path=path,
        number=count_cell(number),
        base_offset=count_cell(base),
        size_bytes=bytes_cell(size_bytes),
        state=Cell(int(is_active), "active" if is_active else "closed"),
    )


assert list(PARTITION_SEVERITIES)[-1] == OK
