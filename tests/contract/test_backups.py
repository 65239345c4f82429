"""A bundled cluster that was backed up, lost and restored has its topics and records."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from partiscope.cli.shared.exits import Exit
from tests.support.bundled_cluster import BundledCluster
from tests.support.kafka_eyes import KafkaEyes
from tests.support.patience import WAIT_S
from tests.support.phrases import lacking

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(180)]


def typed(*words: str, wanted: Exit = Exit.DONE) -> str:
    """What a command says, in a process of its own: a lock lasts as long as that."""
    done = subprocess.run(
        (sys.executable, "-m", "partiscope", *words),
        capture_output=True,
        text=True,
        timeout=WAIT_S * 3,
        check=False,
    )
    assert done.returncode == wanted, done.stderr
    return done.stdout + done.stderr


def kept_records(cluster: BundledCluster) -> int:
    where = ("--bootstrap", cluster.bootstrap)
    return typed("tail", "orders", "--offset", "earliest", "-e", *where).count("kept")


def test_a_cluster_is_as_it_was_when_it_was_backed_up(tmp_path: Path) -> None:
    data, file = tmp_path / "data", str(tmp_path / "backup.tgz")
    where = ("--data", str(data))
    with BundledCluster(data, brokers=1) as cluster:
        KafkaEyes(cluster.bootstrap).create("orders", {0: [101]})
        produced = ("produce", "orders", "--value", "kept", "--count", "7")
        typed(*produced, "--bootstrap", cluster.bootstrap)
        for words in (("backup", file), ("restore", file)):
            told = typed(*words, *where, wanted=Exit.FAILED)
            assert not lacking(told, "in use", "End that one")
        cluster.stop()
        typed("backup", file, *where)
        cluster.start()
        KafkaEyes(cluster.bootstrap).create("later", {0: [101]})
        cluster.stop()
        typed("restore", file, *where)
        cluster.start()
        assert kept_records(cluster) == 7
        assert "later" not in typed("topics", "list", "--bootstrap", cluster.bootstrap)
        cluster.stop()
        shutil.rmtree(data)
        typed("restore", file, *where)
        cluster.start()
        assert kept_records(cluster) == 7
