"""Nobody waits for configs to show: a cluster in memory shows them at once."""

import pytest

from control.operations import throttling


@pytest.fixture(autouse=True)
def _shown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttling, "_SHOWN_POLL_S", 0.0)
