"""How the terminal screen is started: two processes, of which the one that shows stays small."""

import subprocess
import sys
from pathlib import Path

from control.model.command_line import CommandFlags
from control.model.ids import ClusterId
from control.model.watched_cluster import WatchedCluster
from control.views.tour import Offer
from partiscope.cli.processes.tui_opening import Opening
from tests.support.patience import WAIT_S

PROGRAM = str(Path(sys.executable).parent / "partiscope")
LOADED = """
import sys
from partiscope.cli.app import main
from partiscope.cli.processes.tui_opening import load
load()
import tui.app, tui.screens.details.overview
print(*{"pydantic", "typer", "duckdb", "aiokafka", "pydoc"} & sys.modules.keys())
"""


def test_what_was_read_beside_is_what_is_opened() -> None:
    clusters = (
        WatchedCluster(name="prod", bootstrap="k:1", cluster_id=ClusterId("c"), color="teal"),
        WatchedCluster(is_read_only=True),
    )
    opening = Opening(
        tour=Offer.ONCE,
        tour_mark="/srv/data/tour-began",
        path="map",
        store="/s",
        bus="b:1",
        bus_id="i",
        clusters=clusters,
        flags=CommandFlags(data="--data /d"),
        is_plain=False,
    )
    assert Opening.decode(opening.encode()) == opening


def test_the_screen_loads_no_library_of_words_and_settings() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=WAIT_S
    )
    assert (loaded.stdout.strip(), loaded.stderr) == ("", "")


def test_wrong_words_are_told_once_and_are_the_status() -> None:
    ended = subprocess.run(
        [PROGRAM, "tui", "--colour"], capture_output=True, text=True, timeout=WAIT_S
    )
    assert ended.returncode == 2
    assert ended.stderr.count("Usage") == 1
    assert "--colour" in ended.stderr
