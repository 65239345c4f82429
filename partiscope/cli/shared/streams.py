"""Standard streams as scripts have them: closed, cut off, on a full disk, not of UTF-8."""

import fcntl
import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from partiscope.cli.shared.exits import Exit

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class ReaderGoneError(BaseException):
    """The reader of our output has seen enough (``| head -1``). It is no failure, and no library
    may take it for one."""


class _Pipe(io.FileIO):
    """An output that ends the command quietly when nobody reads it any more."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise ReaderGoneError from None


class _Messages(io.TextIOWrapper):
    """Standard error behind standard output: what was written there before stands before, also in
    one log of both (``>log 2>&1``)."""

    def write(self, text: str, /) -> int:
        # What fails stays for the last flush, which tells of it.
        with suppress(ReaderGoneError, OSError, ValueError):
            sys.stdout.flush()
        return super().write(text)


def is_output_open() -> bool:
    """Whether standard output can be written to: it is there, and not opened to be read."""
    if sys.stdout is None:
        return False
    try:
        return fcntl.fcntl(sys.stdout.fileno(), fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except OSError:  # no file of the system
        return True


def is_piped() -> bool:
    """Whether something else than a terminal is on standard input; also nothing at all."""
    return sys.stdin is None or sys.stdin.closed or not sys.stdin.isatty()


def settle_streams(arguments: list[str]) -> None:
    """Before anything is written. JSON is UTF-8 wherever it goes; of other text an encoding that
    lacks a sign gets a question mark."""
    sys.stdout = _settled(sys.stdout, is_json="--json" in arguments)
    sys.stderr = _settled(sys.stderr, is_json=False, kind=_Messages)


def _settled(
    stream: TextIO | None, *, is_json: bool, kind: type[io.TextIOWrapper] = io.TextIOWrapper
) -> TextIO:
    if stream is None:  # closed by the caller: `>&-`
        return open(os.devnull, "w")
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.reconfigure(errors="replace", encoding="utf-8" if is_json else None)
    if stream not in (sys.__stdout__, sys.__stderr__) or stream.isatty():
        return stream
    pipe = io.BufferedWriter(_Pipe(stream.fileno(), "w", closefd=False))
    return kind(pipe, stream.encoding, "replace", line_buffering=stream is sys.__stderr__)


def flush_streams(status: int) -> int:
    """Flushes both streams; answers the exit status."""
    for stream in (sys.stderr, sys.stdout):
        try:
            stream.flush()
        except (ReaderGoneError, BrokenPipeError):
            _give_up(stream)
        except OSError as error:
            _give_up(stream)
            status = Exit.FAILED
            if stream is sys.stdout:
                sys.stderr.write(f"partiscope: cannot write the output: {error.strerror}\n")
    return status


def _give_up(stream: TextIO) -> None:
    """Python flushes once more at its end, and would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
