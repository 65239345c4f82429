"""An installation in the foreground: parts in stages, and what is told when one cannot start."""

import asyncio
import sys
from pathlib import Path

import pytest

from partiscope.running import run_until_signal
from partiscope.supervisor import Part, PartFailedError, Supervisor


def test_a_part_that_cannot_start_in_a_later_stage_is_named(tmp_path: Path) -> None:
    def part(name: str, code: str) -> Part:
        command = (sys.executable, "-c", code)
        return Part(name=name, command=command, log_file=tmp_path / f"{name}.log")

    shown = part("page", "print('ready', flush=True); import time; time.sleep(60)")
    acting = part("executor", "import sys; sys.exit('no room for state')")

    async def stage(supervisor: Supervisor) -> str:
        async def show_then_act() -> None:
            await supervisor.start_and_wait(shown)
            await supervisor.start_and_wait(acting)

        async with asyncio.TaskGroup() as group:
            group.create_task(show_then_act())
        return "ready"

    with pytest.raises(PartFailedError, match=r"executor ended before .* no room for state"):
        run_until_signal(stage)
