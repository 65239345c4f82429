"""Files for a public host of the repository: valid by the host's own schemas, and true."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.support.node_cluster import ROOT

HOST: Final = ROOT / ".github"
SCHEMAS: Final = {
    "workflows/ci.yml": "github-workflows",
    "ISSUE_TEMPLATE/bug.yml": "github-issue-forms",
    "ISSUE_TEMPLATE/wish.yml": "github-issue-forms",
    "ISSUE_TEMPLATE/config.yml": "github-issue-config",
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_files_are_valid(name: str) -> None:
    schema = ("--builtin-schema", f"vendor.{SCHEMAS[name]}")
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *schema, HOST / name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_file_has_a_schema() -> None:
    there = {str(it.relative_to(HOST)) for it in HOST.rglob("*.yml")}
    assert there == SCHEMAS.keys()


def test_steps_run_what_the_repository_has() -> None:
    jobs = yaml.safe_load((HOST / "workflows/ci.yml").read_text())["jobs"]
    typed = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert "bash .ci/run" in typed
    targets = (ROOT / "Makefile").read_text()
    for line in typed:
        words = line.split()
        if words[0] == "make":
            assert all(f"\n{target}:" in targets for target in words[1:])
        else:
            assert any(Path(ROOT, it).is_file() for it in words if "/" in it and ".venv" not in it)
