"""Parts are real processes here: started, watched, restarted, stopped."""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import partiscope.supervisor
from partiscope.health import Health
from partiscope.installation import Installation
from partiscope.supervisor import Child, Part, PartFailedError, Supervisor
from tests.support.patience import patience_s
from tests.support.ports import free_ports
from tests.support.settle import until, wait_until

READY_THEN_SLEEP = "print('ready here', flush=True); import time; time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + READY_THEN_SLEEP


def _part(tmp_path: Path, code: str, name: str = "part") -> Part:
    return Part(
        name=name,
        command=(sys.executable, "-c", code),
        log_file=tmp_path / f"{name}.log",
        ready_timeout_s=60,
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_part_is_ready_when_it_says_so_and_stops_when_told(tmp_path: Path) -> None:
    said: list[str] = []
    supervisor = Supervisor(said.append)
    await supervisor.start_and_wait(_part(tmp_path, READY_THEN_SLEEP))
    pid = supervisor.children["part"].pid
    assert pid is not None
    await supervisor.stop()
    assert not _is_alive(pid)
    assert said[0].startswith("part         ready in")
    assert said[0].endswith("here")


async def test_a_start_that_takes_long_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(partiscope.supervisor, "TOLD_FIRST_S", 0.01)
    supervisor = Supervisor(said.append)
    waiting = asyncio.create_task(
        supervisor.start_and_wait(_part(tmp_path, "import time; time.sleep(600)"))
    )
    await until(lambda: len(said) > 2)
    assert all(it.startswith("part         is starting, for ") for it in said)
    waiting.cancel()
    await supervisor.stop()


async def test_a_killed_part_comes_back(tmp_path: Path) -> None:
    said: list[str] = []
    child = Child(_part(tmp_path, READY_THEN_SLEEP), said.append)
    child.start()
    await child.wait_ready()
    first = child.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await until(lambda: any("is back" in line for line in said))
    assert child.pid not in (None, first)
    assert "part ended (signal SIGKILL)" in said[0]
    await child.stop()


async def test_a_part_that_cannot_start_is_quoted(tmp_path: Path) -> None:
    part = _part(tmp_path, "import sys; sys.exit('log.dirs is not writable. Choose another.')")
    child = Child(part, lambda _: None)
    child.start()
    with pytest.raises(PartFailedError, match=r"log\.dirs is not writable\. Choose another\."):
        await child.wait_ready()
    await child.stop()


async def test_a_part_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    child = Child(_part(tmp_path, STUBBORN), lambda _: None)
    child.start()
    await child.wait_ready()
    pid = child.pid
    assert pid is not None
    await child.stop(grace_s=0.2)
    await until(lambda: not _is_alive(pid))


async def test_a_flood_without_newlines_does_not_stall_a_part(tmp_path: Path) -> None:
    flood = "import sys; sys.stdout.write('x' * 300_000 + chr(10)); " + READY_THEN_SLEEP
    child = Child(_part(tmp_path, flood), lambda _: None)
    child.start()
    assert await child.wait_ready() == "ready here"
    await child.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's")
def test_no_part_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys; from pathlib import Path\n"
        "from partiscope.supervisor import Part, Supervisor\n"
        "async def main():\n"
        "    supervisor = Supervisor(lambda _: None)\n"
        f"    part = Part(name='p', command=(sys.executable, '-c', {READY_THEN_SLEEP!r}),\n"
        f"                log_file=Path({str(tmp_path / 'p.log')!r}))\n"
        "    await supervisor.start_and_wait(part)\n"
        "    print(supervisor.children['p'].pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
    wait_until(lambda: not _is_alive(pid), "the part does not outlive its supervisor")


async def test_a_part_comes_back_when_its_log_can_be_opened_again(tmp_path: Path) -> None:
    said: list[str] = []
    part = _part(tmp_path / "logs", READY_THEN_SLEEP)
    child = Child(part, said.append)
    child.start()
    await child.wait_ready()
    first = child.pid
    assert first is not None
    part.log_file.parent.rename(tmp_path / "aside")
    (tmp_path / "logs").write_text("in the way")
    os.kill(first, signal.SIGKILL)
    await until(lambda: any("part cannot be started: " in line for line in said))
    (tmp_path / "logs").unlink()
    await until(lambda: any("is back" in line for line in said))
    await child.stop()


async def test_a_full_disk_does_not_end_the_watching(tmp_path: Path) -> None:
    said: list[str] = []
    ends_once = "import sys; print('ready', flush=True); sys.exit(7)"
    child = Child(replace(_part(tmp_path, ends_once), log_file=Path("/dev/full")), said.append)
    child.start()
    await child.wait_ready()
    await until(lambda: any("is back" in line for line in said))
    assert "part ended (exit status 7)" in said[0]
    await child.stop()


async def test_the_log_of_a_part_stays_small_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partiscope.supervisor.LOG_BYTES_MAX", 10_000)
    monkeypatch.setattr("partiscope.supervisor.LOG_CHECK_S", 0.05)
    chatty = (
        "import sys, time; print('ready', flush=True)\n"
        "while True: sys.stderr.write('x' * 99 + '\\n'); time.sleep(0.001)"
    )
    part = _part(tmp_path, chatty)
    child = Child(part, lambda _: None)
    child.start()
    await child.wait_ready()
    older = part.log_file.with_suffix(".log.1")
    await until(older.exists)
    first = older.stat().st_mtime_ns
    await until(lambda: older.stat().st_mtime_ns > first)
    assert older.read_text().startswith("x")
    assert "\0" not in part.log_file.read_text()
    await child.stop()


async def test_a_page_that_hangs_is_replaced(tmp_path: Path) -> None:
    """It is stopped as a debugger stops it: alive, with a port that takes connections."""
    (port,) = free_ports(1)
    said: list[str] = []
    health = Health(
        host="127.0.0.1", port=port, every_s=0.2, timeout_s=patience_s(1.0), misses_max=3
    )
    words = ("dashboard", "--store", str(tmp_path / "store"), "--port", str(port))
    Installation(bus="127.0.0.1:1").save(tmp_path / "data")
    part = Part(
        name="dashboard",
        command=(sys.executable, "-m", "partiscope", *words),
        log_file=tmp_path / "dashboard.log",
        env={"PARTISCOPE_DATA": str(tmp_path / "data")},
        ready_timeout_s=patience_s(90),
        health=health,
    )
    child = Child(part, said.append)
    child.start()
    try:
        await child.wait_ready()
        first = child.pid
        assert first is not None
        while not await health.answers():
            assert child.pid == first, said
        os.kill(first, signal.SIGSTOP)
        await until(lambda: any("is back" in line for line in said), timeout_s=60)
        assert child.pid not in (None, first)
        assert any(f"/health, {health.misses_max} times" in line for line in said)
        while not await health.answers():
            assert child.pid is not None, said
    finally:
        await child.stop()


@pytest.mark.parametrize(
    ("host", "asked"),
    [("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("10.1.2.3", "10.1.2.3"), ("fe80::1", "[fe80::1]")],
)
def test_a_page_is_asked_where_it_listens(host: str, asked: str) -> None:
    assert Health(host=host, port=8050).url == f"http://{asked}:8050/health"
