"""Ends the process of a test that its time-out cannot end: one that hangs in C.

pytest-timeout raises by a signal, which Python handles between two steps of its own. A test that
waits within a library, such as librdkafka for a thread of its own, takes no such step. Beside
others the test is then told as failed and its process started anew; alone the run ends.

pytest-xdist 3.8 gives all tests of an ended process to others, also those that are done, and waits
for ever for these: ``GroupScheduling`` gives those alone that have not begun.
"""

import faulthandler
from collections.abc import Generator
from typing import Any, Final

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key as _stderr  # the one not captured
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

FURTHER_S: Final = 60.0
"""After the test's own time-out."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """From the set-up of a test to the end of its fixtures."""
    if limit_s := _limit_s(item):
        stderr = item.config.stash[_stderr]
        faulthandler.dump_traceback_later(limit_s + FURTHER_S, exit=True, file=stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _limit_s(item: pytest.Item) -> float:
    """0: it may take as long as it wants."""
    marker = item.get_closest_marker("timeout")
    given = (marker.args[0] if marker.args else marker.kwargs.get("timeout")) if marker else None
    return float(given if given is not None else item.config.getoption("timeout") or 0.0)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "GroupScheduling | None":
    """Who runs what; None: as pytest-xdist does it."""
    return GroupScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


class GroupScheduling(LoadGroupScheduling):  # type: ignore[misc]
    """``--dist loadgroup``, also where a process ends."""

    def schedule(self) -> None:
        """Give each process two units: it begins a test once it knows the next one."""
        super().schedule()
        for node in self.nodes:
            self._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Give what it has not begun to others. Returns the test in which it ended; None: none."""
        units = {
            scope: it for scope, it in self.assigned_work.pop(node).items() if not all(it.values())
        }
        if not units:
            return None
        scope, unit = next(iter(units.items()))
        ended: str = next(test for test, is_done in unit.items() if not is_done)
        unit[ended] = True
        if all(unit.values()):
            del units[scope]
        self.workqueue.update(units)
        for other in self.assigned_work:
            self._reschedule(other)
        return ended
