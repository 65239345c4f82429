"""The planner works alone on a topology file, as its README shows."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from planner.reassignment_json import parse_reassignment

ROOT: Final = Path(__file__).parents[3]
ROOMS: Final = ("broker", "spark_metrics", "control", "dashboard", "tui", "partiscope")
PACKAGES: Final = {"control", "control.model"}
SHOWS_MODULES: Final = "\nimport sys\nprint(*sys.modules, file=sys.stderr)\n"
TOPOLOGY: Final[dict[str, Any]] = {
    "brokers": [{"id": 1}, {"id": 2}],
    "partitions": [{"topic": "t", "partition": n, "replicas": [1], "size": 10} for n in range(4)],
}


def test_the_program_in_the_readme_plans_with_names_and_units_only(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "planner/README.md").read_text(), re.S)
    (tmp_path / "topology.json").write_text(json.dumps(TOPOLOGY))
    done = subprocess.run(
        [sys.executable, "-c", program + SHOWS_MODULES],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    moved = parse_reassignment(done.stdout)
    assert len(moved) == 2
    assert set(moved.values()) == {(2,)}, "two of four go to the empty broker"
    of_rooms = {name for name in done.stderr.split() if name.partition(".")[0] in ROOMS}
    assert of_rooms - PACKAGES == {"control.model.ids", "control.model.units"}
