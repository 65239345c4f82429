"""``status --json`` keeps to its schema, and the check of the examples to its statuses."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from partiscope.cli.app import run
from partiscope.cli.watch.status import SCHEMA
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows

ROOT: Final = Path(__file__).resolve().parents[4]
DOCUMENT: Final = ROOT / "docs" / "reference" / "status.schema.json"
CHECK: Final = ROOT / "examples" / "nagios" / "check_partiscope.py"
FUTURE_MS: Final = 3_600_000
"""Figures of so much later are no older when a slow machine looks."""


def _store(folder: Path, *, offline_every: int = 0, groups: int = 1) -> str:
    """A store whose brokers are heard of for as long as a test takes."""
    sizes = SyntheticSizes(topics=3, partitions=4, groups=groups, offline_every=offline_every)
    rows = synthetic_rows(sizes, at_ms=time.time_ns() // 1_000_000 + FUTURE_MS)
    StoreBuilder(folder / "store").write(rows)
    return str(folder / "store")


@pytest.mark.parametrize("offline_every", [0, 3])
def test_the_document_is_as_its_schema_says(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    offline_every: int,
) -> None:
    monkeypatch.setenv("PARTISCOPE_DATA", str(tmp_path))
    store = _store(tmp_path, offline_every=offline_every, groups=3)

    assert run(["status", "--json", "--store", store]) == (5 if offline_every else 0)

    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    schema = json.loads(DOCUMENT.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    assert document["schema"] == SCHEMA
    breaks: tuple[dict[str, Any], ...] = ({"schema": 2}, {"findings": None}, {"groups": [{}]})
    for broken in breaks:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**document, **broken}, schema)


@pytest.mark.parametrize(
    ("sizes", "status", "word"),
    [
        ({}, 0, "OK"),
        ({"groups": 3}, 1, "WARNING"),
        ({"offline_every": 3}, 2, "CRITICAL"),
        (None, 3, "UNKNOWN"),
    ],
)
def test_the_example_of_a_check_ends_as_checks_do(
    tmp_path: Path, sizes: dict[str, int] | None, status: int, word: str
) -> None:
    store = str(tmp_path / "nothing") if sizes is None else _store(tmp_path, **sizes)
    program = Path(sys.executable).with_name("partiscope")
    done = subprocess.run(
        [sys.executable, str(CHECK), "--store", store],
        capture_output=True,
        text=True,
        env={**os.environ, "PARTISCOPE": str(program), "PARTISCOPE_DATA": str(tmp_path)},
        check=False,
    )

    assert (done.returncode, done.stderr) == (status, "")
    assert done.stdout.startswith(f"PARTISCOPE {word}: ")
    assert done.stdout.count("\n") == 1
