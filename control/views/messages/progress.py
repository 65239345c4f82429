"""Lines of the produce views: the limits of a topic, and how far a run is."""

from collections.abc import Mapping
from typing import Final

from control.kafka.errors import KafkaPortError, NoSuchPartitionError, RecordTooLargeError
from control.kafka.records.producer import Delivery
from control.messages.produce_progress import ProduceProgress
from control.model.ids import TopicPartition
from control.model.offset_range import partition_names
from control.operations.catalogue.topics.produce import PRODUCE, Produce
from control.operations.errors import OperationError
from control.operations.operation_session import OperationSession
from control.operations.sends import Send
from control.views.format import latency_text, record_rate_text
from control.views.tables.messages import moment_text
from control.views.tables.rows import Cell, Tone

NOTHING_ACKNOWLEDGED: Final = "nothing was acknowledged"


async def limits_cell(session: OperationSession, values: Mapping[str, str]) -> Cell:
    """The limits of the topic of a form, or why it would refuse the first record. Empty without a
    topic; a partition that is not there is told by the preview of the key."""
    if not values["topic"]:
        return Cell(None, "")
    try:
        words = await session.limits(Produce.of(PRODUCE.parse(values)))
    except NoSuchPartitionError:
        return Cell(None, "")
    except RecordTooLargeError as error:
        return Cell(None, f"{error}; {error.next_step}", Tone.CRITICAL)
    except (KafkaPortError, OperationError) as error:
        return Cell(None, str(error), Tone.CRITICAL)
    return Cell(None, words, Tone.MUTED)


def last_words(send: Send) -> str:
    """``last send to orders, 12:05:09: stopped: 3 of 5 acknowledged``, or why it ended."""
    if send.error is not None:
        words = str(send.error)
    elif send.progress is None:
        words = NOTHING_ACKNOWLEDGED
    else:
        words = progress_cells(send.progress, send.asked.job.options.acks)[0].text
    return f"last send to {send.topic}, {moment_text(send.ended_ms)}: {words}"


def landed_words(last: Delivery, acks: str) -> str:
    """``orders-10 @ 254, 3.1 ms, acks all``."""
    offset = "offset unknown" if last.offset < 0 else last.offset
    latency = latency_text(last.latency_ms)
    return f"{last.topic}-{last.partition} @ {offset}, {latency}, acks {acks}"


def progress_words(progress: ProduceProgress) -> str:
    """``3 of 5 acknowledged, 12 records/s, 2 failed``."""
    pace = record_rate_text(progress.records_per_s)
    failed = f", {progress.failed:,} failed" if progress.failed else ""
    return f"{progress.acked:,} of {progress.total:,} acknowledged, {pace}{failed}"


def latency_words(progress: ProduceProgress) -> str:
    """Percentiles of acknowledgement times; empty: none came."""
    found = progress.latencies
    if found is None:
        return ""
    return (
        f"p50 {latency_text(found.p50_ms)} · p95 {latency_text(found.p95_ms)} · "
        f"p99 {latency_text(found.p99_ms)} · max {latency_text(found.max_ms)}"
    )


def waiting_words(progress: ProduceProgress) -> str:
    """``2 records wait for an answer of orders-1 for 4 s; each is given up after 15 s``; empty:
    none waits for long."""
    it = progress.waiting
    if it is None:
        return ""
    keys = [TopicPartition(it.topic, number) for number in it.partitions]
    where = partition_names(keys) if keys else it.topic
    wait = "record waits" if it.records == 1 else "records wait"
    most = "it" if it.records == 1 else "each"
    words = f"{it.records:,} {wait} for an answer of {where} for {it.seconds:.0f} s"
    return f"{words}; {most} is given up after {it.seconds_max:g} s"


def failed_words(progress: ProduceProgress) -> str:
    """``2 × record too large, 1 × timed out``; empty: none failed."""
    return ", ".join(f"{count:,} × {kind}" for kind, count in progress.errors_by_kind.items())


def progress_cells(progress: ProduceProgress, acks: str) -> tuple[Cell, ...]:
    """A line each: what was acknowledged, how soon, what failed and why."""
    landed = "" if progress.last is None else landed_words(progress.last, acks)
    words = landed or NOTHING_ACKNOWLEDGED
    if progress.total > 1:
        words = progress_words(progress) + (f"; last {landed}" if landed else "")
    tone = Tone.FINE if progress.acked and not progress.failed else Tone.PLAIN
    if progress.is_stopped:
        words, tone = f"stopped: {words}", Tone.WARNING
    elif not progress.is_done:
        words, tone = f"sending: {words}", Tone.PLAIN
    lines = [Cell(progress.acked, words, tone)]
    if latencies := latency_words(progress):
        lines.append(Cell(None, f"acknowledged after {latencies}", Tone.MUTED))
    if waiting := waiting_words(progress):
        lines.append(Cell(None, waiting, Tone.WARNING))
    errors = [failed_words(progress)] if progress.failed > 1 else []
    lines += (Cell(None, it, Tone.CRITICAL) for it in (*errors, *progress.errors))
    return tuple(lines)
