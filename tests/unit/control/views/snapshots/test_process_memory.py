"""Processes that answer keys: garbage is looked for again once the first picture stands, and
memory is what is in use."""

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from control.views.snapshots.process_memory import SWITCH_S, be_quick, settle


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    interval_s = sys.getswitchinterval()
    yield
    gc.unfreeze()
    gc.enable()
    sys.setswitchinterval(interval_s)


def test_what_was_loaded_before_the_first_picture_is_not_looked_through_again() -> None:
    be_quick()
    assert not gc.isenabled()
    assert sys.getswitchinterval() == pytest.approx(SWITCH_S)
    settle()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0


def test_who_never_hurried_has_nothing_to_settle() -> None:
    frozen_by_others = gc.get_freeze_count()
    settle()
    assert gc.isenabled()
    assert gc.get_freeze_count() == frozen_by_others


@pytest.mark.skipif(sys.platform != "linux", reason="huge pages are Linux's")
def test_linux_puts_no_huge_pages_together_for_who_takes_what_is_used() -> None:
    code = (
        "from control.views.snapshots.process_memory import take_what_is_used\n"
        "take_what_is_used()\n"
        "print(open('/proc/self/status').read())"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "THP_enabled:\t0" in told.stdout
