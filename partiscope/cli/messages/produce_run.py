"""Sends what ``partiscope produce`` was given, and tells where it lies, also when interrupted."""

import asyncio
import signal
import sys
import time
from typing import Any, Final

from control.kafka.errors import KafkaPortError
from control.messages.produce_progress import ProduceProgress
from control.messages.produce_session import ProduceJob
from control.model.units import counted
from control.operations.catalogue.topics.produce import Produce
from control.operations.errors import OperationError
from control.operations.operation_session import OperationSession
from control.views.format import NA, plural_text
from control.views.messages.progress import (
    failed_words,
    landed_words,
    latency_words,
    progress_words,
    waiting_words,
)
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import note, write_json, write_lines
from partiscope.cli.shared.tables import figure, write_progress, write_table
from partiscope.identity import Target

ANSWERS_WAIT_S: Final = 3.0
"""For so long an interrupted session waits for the answers of what is under way."""
WAITS_TOLD_EVERY_S: Final = 10.0


def send(target: Target, asked: Produce, *, as_json: bool) -> Exit:
    """Send, show progress on a terminal, tell what was acknowledged; the exit status.

    Raises:
        CommandError: status 1; records were not acknowledged.
        KafkaPortError: the cluster refused, or does not answer.
        OperationError: it may not be done.
    """
    asked.run.listen = _Shown(is_moving=sys.stderr.isatty() and not as_json).handle_progress
    ended = asyncio.run(_until_done(target, asked))
    done = asked.run.progress
    is_interrupted = ended in (Exit.INTERRUPTED, Exit.TERMINATED)
    if done is not None and (done.sent or done.failed or is_interrupted):
        _report(done, asked.job, is_interrupted=is_interrupted, as_json=as_json)
    refused = "" if done is None or not done.failed else _refused_words(done)
    if isinstance(ended, Exception) or is_interrupted:
        if refused:
            note(refused)
        if isinstance(ended, Exception):
            raise ended
    elif refused:
        raise CommandError(refused)
    return ended


def _refused_words(done: ProduceProgress) -> str:
    count = counted(done.failed, "record")
    return f"{count} not acknowledged ({failed_words(done)}): {'; '.join(done.errors)}"


async def _until_done(target: Target, asked: Produce) -> Exit | Exception:
    """Waits for the session. The first Ctrl-C or SIGTERM stops sending and waits for answers; a
    second, or `ANSWERS_WAIT_S` later, gives up.

    What went wrong is answered, not raised: what was acknowledged is told first.
    """
    loop, own = asyncio.get_running_loop(), asyncio.current_task()
    ended: list[Exit] = []

    def interrupt(status: Exit) -> None:
        assert own is not None
        asked.run.stop()
        if ended:
            own.cancel()
        else:
            ended.append(status)
            loop.call_later(ANSWERS_WAIT_S, own.cancel)

    loop.add_signal_handler(signal.SIGINT, interrupt, Exit.INTERRUPTED)
    loop.add_signal_handler(signal.SIGTERM, interrupt, Exit.TERMINATED)
    try:
        async with OperationSession(target.watched, bus=target.bus) as session:
            previewed = await session.preview(asked)
            await session.perform(previewed, typed=previewed.word)
    except asyncio.CancelledError:
        pass  # it gave up waiting
    except (KafkaPortError, OperationError, CommandError) as error:
        return error
    return ended[0] if ended else Exit.DONE


class _Shown:
    """Tells how far a run is, and which answers take long."""

    def __init__(self, *, is_moving: bool) -> None:
        """``is_moving``: a person sees one line that changes."""
        self._is_moving = is_moving
        self._waits_told_s = -WAITS_TOLD_EVERY_S

    def handle_progress(self, progress: ProduceProgress) -> None:
        """Tell where an answer takes long, now and then; to a person all."""
        words, now_s = waiting_words(progress), time.monotonic()
        if words and now_s - self._waits_told_s >= WAITS_TOLD_EVERY_S:
            self._waits_told_s = now_s
            assert progress.waiting is not None
            where = f"`partiscope topics describe {progress.waiting.topic}` shows the leaders"
            _clear_progress()
            note(f"{words}; {where}")
        if self._is_moving and progress.total > 1:
            write_progress(_progress_line(progress))


def _report(done: ProduceProgress, job: ProduceJob, *, is_interrupted: bool, as_json: bool) -> None:
    """Prints the acknowledged records and their offsets."""
    if as_json:
        write_json({**_document(done), "interrupted": is_interrupted})
        return
    if is_interrupted:
        unknown = f", {done.unanswered:,} had no answer yet" if done.unanswered else ""
        _clear_progress()
        note(f"interrupted: {plural_text(done.acked, 'record')} acknowledged{unknown}")
    if done.total == 1 and done.last is not None:
        write_lines(landed_words(done.last, job.options.acks))
        return
    if not is_interrupted:
        _clear_progress()
        note(_progress_line(done))
    heads = ["partition", "records", "first offset", "last offset"]
    write_table(list(map(figure, heads)), _partition_rows(done))


def _clear_progress() -> None:
    """Removes the progress that a terminal shows."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")


def _partition_rows(done: ProduceProgress) -> list[list[str]]:
    return [
        [str(partition), str(count), *map(str, done.offsets.get(partition, (NA, NA)))]
        for partition, count in done.per_partition.items()
    ]


def _progress_line(progress: ProduceProgress) -> str:
    return "; ".join(filter(None, (progress_words(progress), latency_words(progress))))


def _document(done: ProduceProgress) -> dict[str, Any]:
    last, latencies = done.last, done.latencies
    return {
        "sent": done.sent,
        "acked": done.acked,
        "failed": done.failed,
        "unanswered": done.unanswered,
        "seconds": round(done.elapsed_s, 3),
        "records_per_s": round(done.records_per_s, 1),
        "per_partition": {str(number): count for number, count in done.per_partition.items()},
        "partitions": [
            {
                "partition": partition,
                "records": count,
                "first_offset": done.offsets.get(partition, (None, None))[0],
                "last_offset": done.offsets.get(partition, (None, None))[1],
            }
            for partition, count in done.per_partition.items()
        ],
        "latency_ms": latencies
        and {"p50": latencies.p50_ms, "p95": latencies.p95_ms, "p99": latencies.p99_ms},
        "last": last and {"partition": last.partition, "offset": last.offset},
        "errors": list(done.errors),
        "errors_by_kind": dict(done.errors_by_kind),
    }
