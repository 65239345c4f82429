"""An installation in the foreground: parts in stages, and what is told when one cannot start."""

import asyncio
import sys
from pathlib import Path

import pytest

from partiscope import processes, running
from partiscope.layout import ClusterLayout
from partiscope.running import run_until_signal
from partiscope.settings import Settings
from partiscope.supervisor import Part, PartFailedError, Supervisor
from tests.support.patience import WAIT_S


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

    with pytest.raises(PartFailedError, match=r"executor ended before.* no room"):
        run_until_signal(stage)


@pytest.mark.parametrize("is_slow", [False, True])
def test_the_page_starts_after_collectors_that_are_quick_and_without_those_that_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_slow: bool
) -> None:
    def part(name: str, *, waits_for: str = "") -> Part:
        wait = f"while not (here / '{waits_for}').exists(): time.sleep(0.02)\n" if waits_for else ""
        code = (
            f"import pathlib, time; here = pathlib.Path({str(tmp_path)!r})\n{wait}"
            f"(here / '{name}').touch(); print('ready', flush=True); time.sleep(60)"
        )
        command = (sys.executable, "-c", code)
        return Part(name=name, command=command, log_file=tmp_path / f"{name}.log")

    started: list[str] = []

    def told(made: Part) -> Part:
        started.append(made.name)
        if made.name == "page":
            assert (tmp_path / "collector").exists() != is_slow
        return made

    collector = part("collector", waits_for="page" if is_slow else "")
    monkeypatch.setattr(running, "COLLECTORS_ALONE_S", 0.3 if is_slow else 30.0)
    monkeypatch.setattr(processes, "broker_parts", lambda *_: [])
    monkeypatch.setattr(processes, "metrics_part", lambda *_: part("metrics"))
    monkeypatch.setattr(processes, "collector_parts", lambda *_: [collector])
    monkeypatch.setattr(processes, "dashboard_part", lambda *_: told(part("page")))
    monkeypatch.setattr(processes, "executor_part", lambda *_: told(part("executor")))
    layout = ClusterLayout(cluster_id="test", nodes=(), overrides={})

    async def stage() -> str:
        supervisor = Supervisor(lambda text: None)
        try:
            starting = running.start_everything(supervisor, layout, Settings(), with_demo=False)
            return await asyncio.wait_for(starting, WAIT_S)
        finally:
            await supervisor.stop()

    assert asyncio.run(stage()).startswith("ready in")
    assert set(started) == {"page", "executor"}
