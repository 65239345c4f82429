"""The example notebook runs on a store that the real job wrote, and draws the lag that is true."""

import base64
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from pyspark.sql import SparkSession

from tests.spark.story import Story, broker, commit, group, replica
from tests.support.node_cluster import ROOT
from tests.support.patience import WAIT_S

pytestmark = [
    pytest.mark.spark,
    pytest.mark.thorough,
    # pyspark leaves the sockets, over which it collects Arrow, to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
NOTEBOOK = ROOT / "examples" / "lag_by_broker.ipynb"
STEP_MS = 20_000
STEPS = 4
LAG = {101: 700, 102: 40}
"""By broker, each the leader of one partition; 102 takes over the other one in the last step."""


def test_lag_is_drawn_by_broker(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story(session=spark, store=tmp_path / "store")
    for step in range(STEPS):
        tell(story, step * STEP_MS, leader=102 if step == STEPS - 1 else 101)
        story.batch()
    monkeypatch.setenv("PARTISCOPE_STORE", str(story.store))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    folder = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=int(WAIT_S), resources=folder).execute()
    (drawn,) = notebook.cells[-1].outputs
    traces = {it["name"]: it for it in drawn["data"]["application/vnd.plotly.v1+json"]["data"]}
    assert {name: lags(trace) for name, trace in traces.items()} == {
        "101": [LAG[101]] * (STEPS - 1),
        "102": [LAG[102]] * (STEPS - 1) + [sum(LAG.values())],
    }


def tell(story: Story, at_ms: int, *, leader: int) -> None:
    """Two partitions; ``leader`` leads the first, and 102 the second."""
    for source in LAG:
        rows: list[Any] = [broker(at_ms, source)]
        for partition, led_by in ((0, leader), (1, 102)):
            if led_by == source:
                end = 1_000 + at_ms
                led = {"partition": partition, "leader": led_by, "leader_epoch": led_by - 100}
                rows.append(replica(at_ms + 1, end, **led))
                lag = LAG[101 if partition == 0 else 102]
                rows.append(commit(at_ms, end - lag, partition=partition))
        rows.append(group(at_ms))
        story.round(source, at_ms + 1, *rows)


def lags(trace: dict[str, Any]) -> list[int]:
    """The drawn values, whichever way Plotly packs them."""
    drawn = trace["y"]
    if isinstance(drawn, dict):
        return [int(it) for it in np.frombuffer(base64.b64decode(drawn["bdata"]), drawn["dtype"])]
    return [int(it) for it in drawn]
