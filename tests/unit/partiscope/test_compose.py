"""docker-compose.yml: valid by the Compose specification, and true to the command line."""

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from partiscope.cli.commands import COMMANDS, loaded

FILE: Final = Path(__file__).resolve().parents[3] / "docker-compose.yml"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return loaded


def test_it_is_valid_by_the_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema"]
    done = subprocess.run(
        [*command, "--builtin-schema", "vendor.compose-spec", str(FILE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_it_runs_the_same_parts_as_up(compose: dict[str, Any]) -> None:
    brokers = {f"broker-{number}" for number in (101, 102, 103)}
    parts = {"network", "metrics", "executor", "dashboard", "demo", *brokers}
    assert set(compose["services"]) == parts


def test_every_service_comes_back_and_ends_when_told(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["restart"] == "unless-stopped", name
        assert service["init"], f"{name}: a process 1 without an init may not hear SIGTERM"


def test_every_command_and_flag_exists(compose: dict[str, Any]) -> None:
    commands: dict[str, Any] = {command.name: loaded(command) for command in COMMANDS}
    for name, service in compose["services"].items():
        if "command" not in service:
            continue
        command, *flags = service["command"]
        known = {option for param in commands[command].params for option in param.opts}
        used = {flag for flag in flags if flag.startswith("--")}
        assert used <= known, f"{name} uses {used - known}"


def test_every_broker_is_configured_alike(compose: dict[str, Any]) -> None:
    parsed = [
        dict(line.split("=", 1) for line in config["content"].splitlines())
        for config in compose["configs"].values()
    ]
    assert len({config["controller.quorum.voters"] for config in parsed}) == 1
    assert len({config["cluster.id"] for config in parsed}) == 1
    assert {config["node.id"] for config in parsed} == {"101", "102", "103"}
    for config in parsed:
        own = f"{config['node.id']}@127.0.0.1:"
        voter = next(v for v in config["controller.quorum.voters"].split(",") if own in v)
        assert f"CONTROLLER://{voter.split('@')[1]}" in config["listeners"]
