"""Nobody waits for configs to show: a cluster in memory shows them at once. Time passes as told."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from control.operations.executor import election, move_watch, run
from control.operations.executor.throttles import left_throttles, throttle_on_cluster

PassS = Callable[[float], Callable[[], None]]


@pytest.fixture(autouse=True)
def _shown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle_on_cluster, "_SHOWN_POLL_S", 0.0)
    monkeypatch.setattr(throttle_on_cluster, "_SHOWN_SOON_S", 0.0)


@pytest.fixture
def pass_s(monkeypatch: pytest.MonkeyPatch) -> PassS:
    """A step in which so many seconds pass."""
    clock = SimpleNamespace(now_s=0.0)
    for module in (move_watch, run, election, left_throttles):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now_s))

    def step(seconds: float) -> Callable[[], None]:
        def pass_() -> None:
            clock.now_s += seconds

        return pass_

    return step
