"""A data directory of an older version opens: records, group, moves, figures and history.

`scripts/keep_data.py` makes an archive of each released version.
"""

import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.installation import Installation
from tests.support.node_cluster import ROOT
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(300)]

KEPT: Final = sorted((ROOT / "tests" / "golden").glob("data-*.tar.xz"))
RECORDS, COMMITTED = 60, 40
"""What `scripts/keep_data.py` has written and read."""


def answer(data: Path, *words: str) -> Any:
    done = subprocess.run(
        (sys.executable, "-m", "partiscope", *words, "--json", "--data", str(data)),
        capture_output=True,
        text=True,
        timeout=WAIT_S * 2,
        check=False,
    )
    assert done.returncode in (0, 5), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("archive", KEPT, ids=lambda it: it.name.removesuffix(".tar.xz"))
def test_all_that_an_older_version_left_is_there(archive: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with tarfile.open(archive) as tar:
        tar.extractall(data, filter="data")
    before = json.loads((data / "store/manifest.json").read_text())["version"]
    with Installation(data, ("--no-demo",)) as up:
        up.wait_ready()
        topics = {it["topic"]: it for it in answer(data, "topics", "list")["topics"]}
        assert len(topics["orders"]["partitions"]) == 2
        parts = answer(data, "groups", "describe", "billing")["partitions"]
        assert sum(it["lag"] for it in parts) == RECORDS - COMMITTED
        (move,) = answer(data, "moves")["moves"]
        assert (move["phase"], move["outcome"]) == ("finished", "done")
        before_it = f"SELECT count(*) AS points FROM partition_history WHERE at_ms <= {before}"
        (history,) = answer(data, "history", before_it)["rows"]
        assert history["points"] > 0
        wait_until(lambda: _version(data) > before, "the metrics job goes on in its store")
        document, _ = up.status()
        assert len(document["brokers"]) == up.brokers
    assert not [*(data / "store").glob("set-aside/*")]


def _version(data: Path) -> int:
    version: int = json.loads((data / "store/manifest.json").read_text())["version"]
    return version
