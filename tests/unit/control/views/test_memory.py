"""Processes that answer keys: garbage is looked for again once the first picture stands."""

import gc
import sys
from collections.abc import Iterator

import pytest

from control.views.memory import SWITCH_S, be_quick, settle


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
    settle()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
