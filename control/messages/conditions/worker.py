"""Judges rows in a process of its own, which ends by itself where one row takes too long.

``python -m control.messages.conditions.worker 5 4711``: descriptor of the file of verdicts, and
process id of the parent. Each question and answer is marshalled behind its length. CPU seconds of a
row are counted by the kernel, which ends the process beyond ``ROW_CPU_S``: nothing that a condition
does holds them up, and a machine that is busy with other things costs no record. The verdicts that
stand in the shared file tell the parent at which row it was.
"""

from __future__ import annotations

import marshal
import mmap
import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any, Final

from control.messages.conditions.judges import BUILDERS, Condition
from control.messages.patterns import FilterError

ROW_CPU_S: Final = 1.0
MEMORY_BYTES_MAX: Final = 2 << 30
ROWS_MAX: Final = 2_000
PASSES, FAILS, UNJUDGED = 1, 2, 3
USE, JUDGE = "use", "judge"
LENGTH_BYTES: Final = 8
_REARM_S: Final = 0.01
"""Rows that take less share one setting of the clock: it costs as much as a cheap row."""


class Judging:
    """The conditions of one search after another."""

    def __init__(self, verdicts: mmap.mmap, parent: int) -> None:
        self._verdicts = verdicts
        self._parent = parent
        self._conditions: list[Condition] = []
        self._names: tuple[str, ...] = ()

    def answer(self, question: tuple[str, Any]) -> tuple[str, ...]:
        """Names that rows must have, or the reason of the first row that cannot be judged."""
        kind, told = question
        _arm(ROW_CPU_S)
        try:
            return self._use(told) if kind == USE else (self._judge(told),)
        finally:
            _arm(0)

    def _use(self, texts: Sequence[tuple[str, str]]) -> tuple[str, ...]:
        try:
            self._conditions = [BUILDERS[name](text) for name, text in texts]
        except FilterError as error:
            return ("", error.field, error.words)
        self._names = tuple(frozenset().union(*(each.names for each in self._conditions)))
        return self._names

    def _judge(self, rows: Sequence[tuple[Any, ...]]) -> str:
        reason, armed_s = "", time.monotonic()
        for number, row in enumerate(rows):
            verdict, words = self._verdict(dict(zip(self._names, row, strict=True)))
            self._verdicts[number] = verdict
            reason = reason or words
            if (now_s := time.monotonic()) - armed_s > _REARM_S:
                armed_s = now_s
                _arm(ROW_CPU_S)
                if os.getppid() != self._parent:
                    sys.exit()
        return reason

    def _verdict(self, row: dict[str, Any]) -> tuple[int, str]:
        for condition in self._conditions:
            try:
                if not condition.judge(row):
                    return FAILS, ""
            except ValueError as error:
                return UNJUDGED, f"{condition.field.replace('_', ' ')}: {error}"
        return PASSES, ""


def send(stream: IO[bytes], told: Any) -> None:
    """Write one question or answer."""
    data = marshal.dumps(told)
    stream.write(len(data).to_bytes(LENGTH_BYTES) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one.

    :raises EOFError: the other side has ended.
    """
    length = stream.read(LENGTH_BYTES)
    data = stream.read(int.from_bytes(length))
    if len(length) < LENGTH_BYTES or len(data) < int.from_bytes(length):
        raise EOFError
    return marshal.loads(data)  # noqa: S302 - written by our own parent or child


def _arm(cpu_s: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, cpu_s)


def main() -> None:
    """Until the parent ends, or a condition goes beyond its bounds."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(ValueError, OSError):  # a smaller limit holds already, or there is none here
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    judging = Judging(mmap.mmap(int(sys.argv[1]), ROWS_MAX), int(sys.argv[2]))
    while True:
        try:
            question = receive(sys.stdin.buffer)
        except EOFError:
            return
        send(sys.stdout.buffer, judging.answer(question))


if __name__ == "__main__":
    main()
