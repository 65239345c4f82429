"""``partiscope``: the only executable. Ctrl-C is heeded before what takes long is loaded."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def main() -> None:
    """Entry point: runs a command and turns what went wrong into words and an exit status."""
    arguments = sys.argv[1:]
    with _ended_by_interrupt():
        from partiscope.cli.commands import called, load
        from partiscope.cli.streams import flush_streams, settle_streams

        load(called(arguments))
    settle_streams(arguments)
    sys.exit(flush_streams(run(arguments)))


@contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    """Nothing runs yet that would have to be ended in order: Ctrl-C ends the process at once,
    without a word."""
    heeded = signal.getsignal(signal.SIGINT)
    if heeded is not signal.default_int_handler:  # whoever started us has it ignored
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, heeded)


def run(arguments: list[str]) -> int:
    """Run one command line; returns its exit status, never a traceback for an operator."""
    from partiscope.cli.commands import build_app, called
    from partiscope.cli.exits import Exit, exit_status_of, explain

    try:
        build_app(called(arguments))(args=arguments, prog_name="partiscope")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else Exit.DONE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return Exit.DONE
    except Exception as error:
        status = exit_status_of(error)
        if status is None:
            raise
        sys.stderr.write(f"partiscope: {explain(error)}\n")
        return status
    return Exit.DONE
