"""Asks a process of its own which records pass the conditions of a search that may run for long.

An expression or a path of few characters can take for ever over one record, and neither library
can be interrupted. Its process can be killed: by the kernel beyond the bounds of ``worker``, and by
``close`` when the search ends. A process that is idle serves the next search.
"""

from __future__ import annotations

import atexit
import mmap
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Final

from control.kafka.records.record import FetchedRecord
from control.messages.conditions.worker import (
    JUDGE,
    MEMORY_BYTES_MAX,
    PASSES,
    ROW_CPU_S,
    ROWS_MAX,
    UNJUDGED,
    USE,
    receive,
    send,
)
from control.messages.judged_records import Judged
from control.messages.patterns import FilterError

_ROWS_BYTES_MAX: Final = 4 << 20
"""Of keys and values that are handed over at a time; a larger record goes alone."""
_IDLE_MAX: Final = 1
_ENDING_S: Final = 1.0
_Row = tuple[Any, ...]


class _Worker:
    """The process; for one question at a time."""

    def __init__(self) -> None:
        with tempfile.TemporaryFile() as file:
            file.truncate(ROWS_MAX)
            self.verdicts = mmap.mmap(file.fileno(), ROWS_MAX)
            number = str(file.fileno())
            own = str(os.getpid())
            self._process = subprocess.Popen(
                (sys.executable, "-S", "-P", "-m", receive.__module__, number, own),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=(file.fileno(),),
                cwd="/",
                env={"PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))},
            )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, kind: str, told: object) -> tuple[str, ...]:
        """:raises OSError, EOFError: it has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        send(self._process.stdin, (kind, told))
        answer: tuple[str, ...] = receive(self._process.stdout)
        return answer

    def kill(self) -> None:
        self._process.kill()

    def end(self, wait_s: float = 0.0) -> int:
        """Kill it unless it ends by itself within this time; answers its exit status."""
        try:
            self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                assert stream is not None
                stream.close()
        return self._process.wait()


_idle: list[_Worker] = []


def _end_idle() -> None:
    while _idle:
        _idle.pop().end()


atexit.register(_end_idle)


class ConditionProcess:
    """The conditions of one search, by field, and the process that judges by them."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        """:raises FilterError: one of them cannot be used."""
        self._texts = texts
        self._field = [*texts][-1]
        self._lock = Lock()
        self._is_asking = False
        self._worker: _Worker | None = None
        try:
            self._worker = _taken()
        except OSError as error:
            raise FilterError(self._field, f"no process to judge it: {error.strerror}") from error
        self._names, _ = self._ask(USE, [*texts.items()])
        if self._names[:1] == ("",):
            self.close()
            raise FilterError(*self._names[1:])

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """The search has ended: a question under way is broken off."""
        with self._lock:
            worker, self._worker = self._worker, None
            is_asking = self._is_asking
        if worker is None:
            return
        if is_asking:
            worker.kill()  # who asks ends it
        elif worker.is_alive and len(_idle) < _IDLE_MAX:
            _idle.append(worker)
        else:
            worker.end()

    def judge(self, records: Sequence[Judged]) -> list[bool | str]:
        """Whether each passes, or why that cannot be said.

        :raises FilterError: one of them takes too much time or memory, or the search has ended.
        """
        return [verdict for part in _parts(records) for verdict in self._judge_part(part)]

    def _judge_part(self, records: Sequence[Judged]) -> Iterator[bool | str]:
        rows: list[_Row] = []
        asked: list[FetchedRecord] = []
        unjudged: dict[int, str] = {}
        for number, judged in enumerate(records):
            try:
                rows.append(self._row(judged))
                asked.append(judged.record)
            except ValueError as error:
                unjudged[number] = f"json path: {error}"
        verdicts = iter(self._verdicts(rows, asked) if rows else ())
        return (unjudged.get(it) or next(verdicts) for it in range(len(records)))

    def _row(self, judged: Judged) -> _Row:
        if "json_path" in self._texts:
            _ = judged.document
        return tuple(_VALUES[name](judged) for name in self._names)

    def _verdicts(self, rows: Sequence[_Row], asked: Sequence[FetchedRecord]) -> list[bool | str]:
        (reason,), verdicts = self._ask(JUDGE, rows, asked)
        return [reason if each == UNJUDGED else each == PASSES for each in verdicts]

    def _ask(
        self, kind: str, told: Sequence[Any], asked: Sequence[FetchedRecord] = ()
    ) -> tuple[tuple[str, ...], bytes]:
        with self._lock:
            worker = self._worker
            self._is_asking = worker is not None
        if worker is None:
            raise FilterError(self._field, "the search has ended")
        try:
            worker.verdicts[: len(asked)] = bytes(len(asked))
            return worker.ask(kind, told), worker.verdicts[: len(asked)]
        except (EOFError, OSError):
            words = f"{self._texts[self._field]!r} {_ended_words(worker.end(_ENDING_S))}"
            if asked:
                each = asked[worker.verdicts.find(b"\0", 0, len(asked))]
                words += f" on one record: partition {each.partition}, offset {each.offset}"
            next_step = "write it without a loop within a loop, or search without that record"
            raise FilterError(self._field, f"{words}; {next_step}") from None
        finally:
            self._is_asking = False


def _ended_words(status: int) -> str:
    if status == -signal.SIGPROF:
        return f"took longer than {ROW_CPU_S:g} s"
    how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
    return f"ended its process ({how}; it may use {MEMORY_BYTES_MAX >> 30} GiB)"


def _taken() -> _Worker:
    with suppress(IndexError):
        worker = _idle.pop()
        if worker.is_alive:
            return worker
        worker.end()
    return _Worker()


def _parts(records: Sequence[Judged]) -> Iterator[Sequence[Judged]]:
    """Few enough, and small enough, to be handed over at a time."""
    begin = size = 0
    for number, judged in enumerate(records):
        size += judged.record.size_bytes
        if number > begin and (size > _ROWS_BYTES_MAX or number - begin == ROWS_MAX):
            yield records[begin:number]
            begin, size = number, judged.record.size_bytes
    yield records[begin:]


def _key_of(judged: Judged) -> Any:
    return _text_or_bytes(judged.key) if isinstance(judged.key, bytes) else judged.key


def _value_of(judged: Judged) -> Any:
    try:
        return judged.document
    except ValueError:
        return _text_or_bytes(judged.record.value)


def _headers_of(judged: Judged) -> dict[str, Any]:
    return {name: _text_or_bytes(content) for name, content in judged.record.headers}


def _text_or_bytes(value: bytes | None) -> str | bytes | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


_VALUES: Final[Mapping[str, Callable[[Judged], Any]]] = {
    "key": _key_of,
    "value": _value_of,
    "headers": _headers_of,
    "topic": lambda judged: judged.record.topic,
    "partition": lambda judged: judged.record.partition,
    "offset": lambda judged: judged.record.offset,
    "timestamp": lambda judged: judged.record.timestamp_ms,
    "size": lambda judged: judged.record.size_bytes,
}
"""By name in a condition, which asks for those that it needs alone."""
