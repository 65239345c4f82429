"""``partiscope``: the only executable. Ctrl-C is heeded before what takes long is loaded."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


def main() -> None:
    """Entry point: runs a command and turns what went wrong into words and an exit status."""
    if os.environ.get("_PARTISCOPE_COMPLETE") in ("complete_bash", "complete_zsh", "complete_fish"):
        from partiscope.cli.shell_completion import complete

        sys.exit(complete())
    arguments = sys.argv[1:]
    sys.meta_path.insert(0, _NoPandas())
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # a look at each package there is
    sys.exit(_run_tui(arguments) if arguments[:1] == ["tui"] else _run_whole(arguments))


class _NoPandas:
    """Hides pandas, which PyArrow loads with its first array: 0.3 s of CPU. Only Spark's job needs
    it, which is a program of its own."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def _run_whole(arguments: list[str]) -> int:
    with _ended_by_interrupt():
        from partiscope.cli.commands import load_called
        from partiscope.cli.shared.streams import flush_streams, is_output_open, settle_streams

        called = load_called(arguments)
    is_refused = not is_output_open() and (called is None or not called.is_service)
    settle_streams(arguments)
    return flush_streams(_refused_closed() if is_refused else run(arguments))


def _refused_closed() -> int:
    """Before anything is done that nobody would hear of."""
    from partiscope.cli.shared.exits import Exit

    words = "standard output is closed: there is nowhere to write to"
    return _told(Exit.WRONG_USE, f"{words}, and nothing was done. Discard output by `>/dev/null`")


def _run_tui(arguments: list[str]) -> int:
    """Its first figures are waited for: see ``partiscope.cli.processes.tui_start``."""
    with _ended_by_interrupt():
        from partiscope.cli.processes.tui_opening import Opening, show
        from partiscope.cli.processes.tui_start import read_beside

        try:
            told, status = read_beside(arguments, _run_whole)
        except OSError:
            return _run_whole(arguments)
    if not told:
        return status
    opening = Opening.decode(told)
    # Secrets stay in the process that has read them.
    return _status_of(lambda: show(opening)) if opening.is_plain else _run_whole(arguments)


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
    from partiscope.cli.commands import build_program

    return _status_of(lambda: build_program().main(args=arguments, prog_name="partiscope"))


def _status_of(act: Callable[[], object]) -> int:
    from partiscope.cli.shared.streams import ReaderGoneError

    try:
        act()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except ReaderGoneError:
        return 0
    except (KeyboardInterrupt, Exception) as error:
        from partiscope.cli.shared.exits import CommandError, Exit

        if isinstance(error, KeyboardInterrupt):
            return Exit.INTERRUPTED
        if isinstance(error, CommandError):
            return _told(error.status, str(error))
        from partiscope.cli.shared.failures import exit_status_of, explain

        status = exit_status_of(error)
        if status is None:
            raise
        return _told(status, explain(error))
    return 0


def _told(status: int, words: str) -> int:
    from partiscope.cli.shared.streams import ReaderGoneError

    with suppress(ReaderGoneError):
        from control.model.command_line import typed
        from control.views.printable import paragraph

        sys.stderr.write(f"partiscope: {paragraph(typed(words))}\n")
    return status
