"""Standard output as pipes and scripts have it: closed, cut off, on a full disk, not of UTF-8."""

import io
import os
import sys

from partiscope.cli.exits import Exit


def settle_streams(arguments: list[str]) -> None:
    """Before anything is written. JSON is UTF-8 wherever it goes; of other text an encoding that
    lacks a sign gets a question mark."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115  # closed by the caller: `>&-`
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if "--json" in arguments and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")


def flush_streams(status: int) -> int:
    """What is still to be written goes out; the exit status after it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up_stdout()  # whoever reads has seen enough
    except OSError as error:
        _give_up_stdout()
        sys.stderr.write(f"partiscope: cannot write the output: {error.strerror}\n")
        return Exit.FAILED
    return status


def _give_up_stdout() -> None:
    """Python flushes once more at its end, and would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
