"""`down` ends what runs; `down --purge` removes what brokers have made, once it was confirmed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from partiscope.cli.shared.exits import Exit
from tests.support.bundled_cluster import BundledCluster
from tests.support.patience import WAIT_S
from tests.support.phrases import lacking

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(180)]


def down(data: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (sys.executable, "-m", "partiscope", "down", "--data", str(data), *words),
        capture_output=True,
        text=True,
        timeout=WAIT_S * 3,
        check=False,
    )


def test_a_cluster_is_ended_and_removed_when_that_is_confirmed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with BundledCluster(data, brokers=1) as cluster:
        assert cluster.process is not None
        (data / "notes.txt").write_text("mine")
        told = down(data, "--purge", "--dry-run")
        assert told.returncode == Exit.DONE
        assert not lacking(told.stdout, "broker-101", "leaves  " + str(data / "notes.txt"))
        told = down(data, "--purge")
        assert told.returncode == Exit.REFUSED
        assert not lacking(told.stderr, "KiB", str(data), "--yes")
        assert cluster.process.poll() is None
        told = down(data)
        assert told.returncode == Exit.DONE, told.stderr
        assert cluster.process.wait(WAIT_S) == 0
        assert (data / "broker-101").is_dir()
        cluster.start()
        told = down(data, "--purge", "--yes")
        assert told.returncode == Exit.DONE, told.stderr
        assert cluster.process.wait(WAIT_S) == 0
        assert [it.name for it in data.iterdir()] == ["notes.txt"]


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store/manifest.json").write_text("{}")
    told = down(tmp_path, "--purge", "--yes")
    assert told.returncode == Exit.FAILED
    assert not lacking(told.stderr, str(tmp_path), "--data")
    assert (tmp_path / "store/manifest.json").exists()


def test_where_nothing_runs_that_is_told(tmp_path: Path) -> None:
    told = down(tmp_path)
    assert (told.returncode, told.stdout) == (Exit.DONE, f"nothing runs from {tmp_path}\n")


def test_a_script_is_told_what_would_go(tmp_path: Path) -> None:
    with BundledCluster(tmp_path / "data", brokers=1) as cluster:
        assert cluster.process is not None
        told = json.loads(down(tmp_path / "data", "--purge", "--dry-run", "--json").stdout)
        assert told["process"] == cluster.process.pid
        assert told["bytes"] > 0
        assert str(tmp_path / "data/broker-101") in told["removed"]
        assert cluster.process.poll() is None
