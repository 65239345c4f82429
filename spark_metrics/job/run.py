"""One process of the job: waits, starts Spark, runs the query, starts it again when it fails."""

import json
import logging
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import partial
from subprocess import TimeoutExpired
from typing import Any, Final, TypeVar

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_metrics.buckets.python_package import is_loaded_from_archive, write_archive
from spark_metrics.job.checkpoint import checkpoint_fault, set_checkpoint_aside
from spark_metrics.job.connector_jars import fetch_jars
from spark_metrics.job.first_snapshot import has_snapshot, show_first_snapshot
from spark_metrics.job.java import find_java
from spark_metrics.job.micro_batch import BatchReport
from spark_metrics.job.query import JobSettings, build_job, take_in
from spark_metrics.job.readable_offsets import find_readable
from spark_metrics.job.spark_session import (
    SessionSettings,
    add_connector,
    build_session,
    gist,
)
from spark_metrics.job.topic_wait import wait_for_topic
from spark_metrics.state.job_state import JobState, decode_job_state
from spark_metrics.store.writer import StoreWriter
from spark_metrics.window.errors import MetricsError, SparkDiedError, StoreAwayError

POLL_S: Final = 0.1
ALONE_S_MAX: Final = 6.0
"""The first picture has the machine to itself for so long, before a JVM starts that takes all of
it."""
RETRY_S: Final = (1.0, 2.0, 5.0, 10.0)
"""Pauses before a query that failed is started again, the last one for ever."""
AWAY_S: Final = 2.0
"""How often a folder of the store is looked for that is away."""
CHECKPOINT_FAILURES: Final = (2, 8, 32, 128)
"""The checkpoint is begun anew after so many failures in turn."""
NO_RECORDS: Final = "Waiting for data to arrive"
"""Status of a query that has read the topic to its end, and found no record that is new."""
BATCH_S_MAX: Final = 1.2
"""A batch that is under way at a stop is given so long, then left to be replayed."""
JVM_S_MAX: Final = 0.6
"""… and the JVM so long to end by itself: all that it would tidy up is in a folder of ours."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Everything that the command line sets."""

    job: JobSettings
    session: SessionSettings
    retention_ms: int
    says_batches: bool = False
    """Whether each batch is told on stderr, with where its time went."""


class Run:
    """Owns the session; ``stop`` may be called from a signal handler."""

    def __init__(self, settings: RunSettings) -> None:
        self._settings = settings
        self._stopped = threading.Event()
        self._began_s = time.monotonic()
        self._failures = 0
        self._is_ready = False
        self._starts: Mapping[int, int] | None = None
        """Offsets from which a checkpoint that is begun anew reads on."""
        self._fatal: MetricsError | None = None
        self.folder = tempfile.mkdtemp(prefix="partiscope-metrics-")
        """Of its own, for what Spark writes by the way; it goes with the run."""

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        """Run until stopped.

        Raises:
            JavaMissingError, JarsError: what Spark needs cannot be had.
            SparkStartError: Spark does not start.
            StoreTakenError: another job writes this store.
            SparkDiedError: the JVM has ended.
        """
        silence_py4j()
        find_java()
        fetch_jars(say)
        writer = self._opened_store()
        if writer is None:
            return
        is_seen = threading.Event()
        if has_snapshot(writer):
            is_seen.set()
        starting = _in_background(lambda: self._start(is_seen))
        source = self._settings.job.source
        is_there = wait_for_topic(
            source,
            is_stopped=lambda: self._stopped.is_set() or _has_failed(starting),
            say=say,
        )
        try:
            if is_there:
                show_first_snapshot(
                    writer, source, is_over=lambda: starting.done() or self._stopped.is_set()
                )
                is_seen.set()
            if (session := self._started(starting)) is not None:
                add_connector(session)
                self._keep_running(session, writer)
        except (Py4JError, OSError) as error:
            if (status := jvm_status()) is None:
                raise
            raise SparkDiedError(status) from error
        finally:
            end_jvm()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _opened_store(self) -> StoreWriter | None:
        """The store, once all of it is there; None: the run was stopped before."""
        said = ""
        while not self._stopped.is_set():
            try:
                return StoreWriter(
                    self._settings.job.store,
                    retention_ms=self._settings.retention_ms,
                    on_notice=say,
                )
            except StoreAwayError as error:
                if str(error) != said:
                    say(f"waiting: {error}")
                said = str(error)
                self._stopped.wait(AWAY_S)
        return None

    def _start(self, is_seen: threading.Event) -> SparkSession:
        """Once the first picture is there."""
        is_seen.wait(ALONE_S_MAX)
        wanted = self._settings.session
        folders = {"spark.local.dir": self.folder, **wanted.further}
        session = build_session(replace(wanted, further=folders))
        if wanted.has_executors and not is_loaded_from_archive():
            session.sparkContext.addPyFile(str(write_archive(self.folder)))
        return session

    def _started(self, starting: Future[SparkSession]) -> SparkSession | None:
        """Spark; None when the run is stopped before there is one."""
        while not self._stopped.is_set():
            if wait([starting], POLL_S).done:
                return starting.result()
        return None

    def _keep_running(self, session: SparkSession, writer: StoreWriter) -> None:
        while not self._stopped.is_set():
            if why := self._checkpoint_fault(writer):
                self._begin_checkpoint_anew(session, writer, why)
            query = build_job(
                session,
                self._job_for(writer),
                writer=writer,
                on_batch=self._on_batch,
                on_notice=say,
                on_fatal=partial(self._on_fatal, session),
            ).start()
            self._watch(session, query, writer)
            if self._fatal is not None:
                raise self._fatal
            if self._failures in CHECKPOINT_FAILURES:
                why = f"the query failed {self._failures} times in turn"
                self._begin_checkpoint_anew(session, writer, why)
            if not self._stopped.is_set():
                pause_s = RETRY_S[min(self._failures, len(RETRY_S)) - 1]
                say(f"starting the query again in {pause_s:g} s")
                self._stopped.wait(pause_s)

    def _job_for(self, writer: StoreWriter) -> JobSettings:
        """The job, told where a new checkpoint begins."""
        job, manifest = self._settings.job, writer.manifest
        until_ms = manifest.written_ms if manifest else None
        return replace(job, source=replace(job.source, read_until_ms=until_ms, starts=self._starts))

    def _watch(self, session: SparkSession, query: StreamingQuery, writer: StoreWriter) -> None:
        """Wait until the query fails or the run is stopped."""
        try:
            while not self._stopped.is_set():
                if query.awaitTermination(POLL_S):  # type: ignore[arg-type]  # takes floats
                    break
                if not self._is_ready and query.status["message"] == NO_RECORDS:
                    self._say_ready("no records yet,")
        except PySparkException as error:
            if self._fatal is not None:
                return
            self._failures += 1
            say(f"the query failed: {gist(error)}")
            writer.look_again()
            return
        # A batch that is cut off fails, as it must; nobody needs to read its stack.
        session.sparkContext.setLogLevel("OFF")
        stopping = _in_background(query.stop)
        deadline_s = time.monotonic() + BATCH_S_MAX
        while not stopping.done() and time.monotonic() < deadline_s:
            time.sleep(POLL_S / 4)

    def _on_batch(self, report: BatchReport) -> None:
        self._failures = 0
        if not self._is_ready:
            self._say_ready(f"batch={report.batch_id}")
        if self._settings.says_batches:
            say(f"batch {report.batch_id} ms {json.dumps(report.phases_ms)}")
        if report.bad_records:
            say(f"{report.bad_records} bad records in batch {report.batch_id}, kept in bad/")
        if report.lost_records:
            say(f"{report.lost_records} records were gone from the topic before they were read")

    def _say_ready(self, what: str) -> None:
        self._is_ready = True
        seconds = time.monotonic() - self._began_s
        store = self._settings.job.store
        sys.stdout.write(f"ready store={store} {what} after {seconds:.1f} s\n")
        sys.stdout.flush()

    def _checkpoint_fault(self, writer: StoreWriter) -> str:
        """Why a query on the checkpoint would fail, or pass over what the store lacks."""
        job = self._settings.job
        try:
            why = checkpoint_fault(job.checkpoint, job.source.topic, _known(writer).next_offsets)
        except OSError as error:
            say(f"the checkpoint {job.checkpoint} cannot be read now: {error}")
            return ""
        return f"the checkpoint {job.checkpoint} cannot be gone on from: {why}" if why else ""

    def _begin_checkpoint_anew(self, session: SparkSession, writer: StoreWriter, why: str) -> None:
        """Leave a checkpoint that Spark cannot go on from, and records that nobody can read: the
        store knows how far it has read. Of an empty store it begins as every new one does."""
        next_offsets = _known(writer).next_offsets
        if next_offsets and not self._pass_over_damage(session, writer, next_offsets):
            return  # it is the brokers that do not answer
        checkpoint = self._settings.job.checkpoint
        try:
            kept = set_checkpoint_aside(checkpoint)
        except OSError as error:
            say(f"the checkpoint {checkpoint} could not be set aside: {error}")
            return
        say(
            f"{why}; it begins a checkpoint anew, from what the store has taken in; the old one "
            f"lies in {kept}"
        )

    def _pass_over_damage(
        self, session: SparkSession, writer: StoreWriter, next_offsets: Mapping[int, int]
    ) -> bool:
        """Find where reading goes on; whether the brokers have told."""
        source = self._settings.job.source
        found = find_readable(source, next_offsets, is_stopped=self._stopped.is_set)
        if found is None:
            return False
        self._starts = found.starts
        for partition, bad, end in found.damaged:
            say(
                f"the records from offset {bad} to {end - 1} of partition {partition} of the "
                "metrics topic are damaged in its log, and are passed over"
            )
        try:
            take_in(session, self._settings.job, found, writer=writer)
        except (PySparkException, OSError) as error:
            say(f"records before the damaged ones could not be taken in: {gist(error)}")
        return True

    def _on_fatal(self, session: SparkSession, error: MetricsError) -> None:
        """Keep the error, which the caller of ``run`` tells; the query's stack adds nothing."""
        self._fatal = error
        session.sparkContext.setLogLevel("OFF")


def _known(writer: StoreWriter) -> JobState:
    """The job's memory as of the newest version."""
    return decode_job_state(writer.manifest.memory if writer.manifest else {})


def _has_failed(starting: Future[SparkSession]) -> bool:
    return starting.done() and starting.exception() is not None


def say(text: str) -> None:
    """A line for people."""
    sys.stderr.write(f"metrics: {text}\n")
    sys.stderr.flush()


def jvm_status() -> int | None:
    """How the JVM that pyspark started has ended; None: it runs."""
    process = getattr(SparkContext._gateway, "proc", None)
    try:
        return None if process is None else int(process.wait(JVM_S_MAX))
    except TimeoutExpired:
        return None


def silence_py4j() -> None:
    """No stacks of calls that are cut off with the JVM: its end is told in words. py4j logs them by
    its own logger and by the root's."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)


def end_jvm() -> None:
    """End the JVM that pyspark started, so that nothing outlives this process."""
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    # That server would print a stack because its peer is gone.
    server: Any = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
    process.stdin.close()
    process.terminate()
    try:
        process.wait(JVM_S_MAX)
    except TimeoutExpired:
        process.kill()
        process.wait()


def leave(status: int) -> None:
    """End this process at once: py4j's threads would hold it back."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _in_background(call: Callable[[], _T]) -> Future[_T]:
    """Run the call in a daemon thread: a process that leaves does not wait for it."""
    future: Future[_T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 (handed on to whoever asks)
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
