"""Exports of history, read by Spark with Delta Lake and by DuckDB's own extension, by the very
lines that the documents tell to type."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from spark_metrics.history.export import export_history
from spark_metrics.job.connector_jars import cache_folder
from spark_metrics.job.java import find_java
from spark_metrics.store.files import StoreFiles
from spark_metrics.window.aggregates import HISTORY_TABLES, AggregatesReader
from spark_metrics.window.history_points import SPANS_MS
from tests.support.at_once import AtOnce
from tests.support.isolation import MACHINE
from tests.support.node_cluster import ROOT
from tests.support.patience import patience_s
from tests.support.store_builder import CLUSTER, StoreBuilder, SyntheticSizes

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(580)]
DOCUMENT: Final = ROOT / "docs" / "reference" / "history.md"
LAKE, TABLE, SPAN = "/lake/partiscope", "commit_history", "hour"
"""What the documents export and read."""
AT_MS: Final = 1_790_000_000_000
STEP_S: Final = 300
STEPS: Final = 20
"""Together longer than an hour, so that each span has rows."""
LEAN: Final = {
    # Maven's own cache may hold a description whose jar is missing; Ivy would take it.
    "user.home": cache_folder() / "delta-spark",
    "spark.databricks.delta.snapshotPartitions": 1,
    "spark.sql.shuffle.partitions": 1,
    "spark.ui.enabled": "false",
}
"""Settings that change no answer: a table of ten files is read in seconds."""
DUCKDB: Final = "1.5.5"
"""The newest whose extension is on PyPI, beside ours that has none there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An export, and the rows of each table as the store's files hold them."""

    store: str
    lake: str
    tables: dict[str, pa.Table]

    def line(self, engine: str, table: str, span: str) -> str:
        """What the documents tell to type for this engine, for another table and span."""
        rows = re.findall(r"^\| ([^|]+) \| `([^`]+)`", DOCUMENT.read_text(), re.MULTILINE)
        (line,) = [line for name, line in rows if name.startswith(engine)]
        place = f"{LAKE}/{TABLE}"
        assert place in line
        assert f"'{SPAN}'" in line
        line = str(line).replace(place, f"{self.lake}/{table}")
        return line.replace(f"'{SPAN}'", f"'{span}'")

    def must_be(self, found: Path) -> None:
        """Each table and span in this folder holds the rows of the store."""
        for table, whole in self.tables.items():
            for span in SPANS_MS:
                wanted = whole.filter(pc.field("span") == span)
                read = pq.read_table(found / f"{table}-{span}.parquet").select(wanted.schema.names)
                assert wanted.num_rows > 0
                by_all = [(name, "ascending") for name in wanted.schema.names]
                assert read.cast(wanted.schema).sort_by(by_all) == wanted.sort_by(by_all)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Several versions of the log; files were merged between them."""
    folder = tmp_path_factory.mktemp("exported")
    store, lake = str(folder / "store"), str(folder / "lake")
    builder = StoreBuilder(store, executor=AtOnce())
    removed = 0
    for step in range(STEPS):
        now_ms = AT_MS + 1_000 * STEP_S * step
        sizes = SyntheticSizes(topics=1, partitions=2)
        manifest = builder.write_synthetic(sizes, history_s=STEP_S - 1, at_ms=now_ms)
        if step % 9 == 1:
            removed += sum(it.removed for it in export_history(store, lake, now_ms=now_ms))
    assert removed
    files = StoreFiles(store)
    tables = {}
    for table, schema in HISTORY_TABLES.items():
        each = [
            files.read_table(it.path, schema).append_column("span", pa.array([it.span] * it.rows))
            for it in manifest.history[table]
        ]
        tables[table] = pa.concat_tables(each)
    return Exported(store=store, lake=lake, tables=tables)


def test_spark_reads_what_was_exported(exported: Exported, tmp_path: Path) -> None:
    """In Spark's own shell, as the documents start it."""
    (start,) = re.findall(r"^(pyspark --packages [^`]*?[^\\])$", DOCUMENT.read_text(), re.MULTILINE)
    typed = ["import pyarrow.parquet as pq"]
    for table in exported.tables:
        for span in SPANS_MS:
            rows = exported.line("Spark", table, span)
            typed.append(f"pq.write_table({rows}.toArrow(), '{tmp_path}/{table}-{span}.parquet')")
    done = subprocess.run(
        start,
        shell=True,
        input="".join(f"{line}\n" for line in typed),
        text=True,
        capture_output=True,
        timeout=patience_s(500),
        check=False,
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "JAVA_HOME": str(find_java().home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SUBMIT_OPTS": " ".join(f"-D{name}={value}" for name, value in LEAN.items()),
            "PYSPARK_DRIVER_PYTHON_OPTS": "-i",  # as one who types
        },
    )
    written = len([*tmp_path.glob("*.parquet")])
    assert written == len(exported.tables) * len(SPANS_MS), done.stdout + done.stderr[-4_000:]
    exported.must_be(tmp_path)


def test_duckdb_reads_it_by_its_own_extension(exported: Exported, tmp_path: Path) -> None:
    uv = shutil.which("uv") or str(ROOT / ".cache" / "uv" / "bin" / "uv")
    if not Path(uv).exists():
        pytest.skip("uv brings DuckDB's extension, and is not here")
    copies = []
    for table in exported.tables:
        for span in SPANS_MS:
            rows = exported.line("DuckDB, by its extension", table, span).rstrip(";")
            copies.append(f"COPY ({rows}) TO '{tmp_path}/{table}-{span}.parquet'")
    script = f"""
import duckdb, duckdb_extension_delta, json, pathlib
(extension,) = pathlib.Path(duckdb_extension_delta.__path__[0]).rglob("delta.duckdb_extension")
duckdb.execute(f"LOAD '{{extension}}'")
for copy in json.loads({json.dumps(copies)!r}):
    duckdb.execute(copy)
"""
    packages = ("--with", f"duckdb=={DUCKDB}", "--with", f"duckdb-extension-delta=={DUCKDB}")
    command = (uv, "run", "--isolated", "--no-project", "--python", sys.executable, *packages)
    done = subprocess.run(
        [*command, "python", "-c", script],
        env=MACHINE,
        capture_output=True,
        text=True,
        timeout=patience_s(300),
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    exported.must_be(tmp_path)


def test_the_finest_rows_are_those_of_a_chart(exported: Exported) -> None:
    chart = AggregatesReader(exported.store).commit_history(
        cluster=CLUSTER, group_id="group-1", since_ms=0, until_ms=1 << 53, points_max=1 << 53
    )
    of_group = (pc.field("span") == "fine") & (pc.field("group_id") == "group-1")
    names = ["topic", "partition", "at_ms", "committed_offset", "end_offset", "lag"]
    by_all = [(name, "ascending") for name in names]
    rows = exported.tables["commit_history"].filter(of_group)
    assert rows.num_rows == rows["readings"].null_count == 2 * STEP_S * STEPS
    assert rows.select(names).sort_by(by_all) == chart.select(names).sort_by(by_all)
