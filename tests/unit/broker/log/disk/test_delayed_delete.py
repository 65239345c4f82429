"""What the disk refuses to remove is told once, and tried until it goes."""

import logging
from pathlib import Path

import pytest

from broker.log.disk.delayed_delete import Remover
from tests.support.settle import wait_until


def test_what_is_refused_is_told_once_and_goes_when_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left = tmp_path / "left"
    in_the_way = left / "a-directory"
    in_the_way.mkdir(parents=True)
    remover = Remover()
    remover.start([str(left)])
    tried = 0

    def has_refused_thrice() -> bool:
        nonlocal tried
        before = dict(remover._running)
        remover.collect()
        tried += remover._running != before
        return tried >= 3

    wait_until(has_refused_thrice, "three tries")
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    in_the_way.rmdir()

    def is_gone() -> bool:
        remover.collect()
        return not left.exists()

    wait_until(is_gone, "the directory has gone")
    remover.stop()
