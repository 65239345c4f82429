"""``partiscope tui`` is started by two processes side by side.

To read a command line and settings takes libraries that the screen itself never needs, and a third
of the time to its first figures. So a child reads them, tells what the screen is to be opened with,
and ends; this process has meanwhile loaded what shows figures.
"""

import os
from collections.abc import Callable

from partiscope.cli.processes import tui_opening
from partiscope.cli.processes.tui_opening import Opening

Run = Callable[[list[str]], int]


def read_beside(arguments: list[str], run: Run) -> tuple[bytes, int]:
    """Runs the child; answers its encoded ``Opening`` and its exit status. Empty: the words led to
    no opening, and the child has said why. ``run`` runs a command line.

    Raises:
        OSError: there is no child to be had.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _be_the_child(arguments, run, writing)
    os.close(writing)
    tui_opening.load()
    with open(reading, "rb") as pipe:
        told = pipe.read()
    return told, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _be_the_child(arguments: list[str], run: Run, writing: int) -> None:
    """Never returns."""

    def tell(what: Opening) -> None:
        os.write(writing, what.encode())

    status = 1
    try:
        tui_opening.take = tell
        status = run(arguments)
    finally:
        os._exit(status)
