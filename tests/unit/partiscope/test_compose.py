"""docker-compose.yml and its overlays: valid by the Compose specification, and true to the
command line. tests/e2e/test_containers.py runs them."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from broker.config.broker_config import BrokerConfig
from broker.config.properties import parse_properties
from partiscope.cli.commands import COMMANDS, loaded
from tests.support.node_cluster import ROOT

FILE: Final = ROOT / "docker-compose.yml"
OVERLAYS: Final = tuple(sorted((ROOT / "deploy" / "compose").glob("*.yml")))


def services_of(file: Path) -> dict[str, dict[str, Any]]:
    services: dict[str, dict[str, Any]] = yaml.safe_load(file.read_text())["services"]
    return services


SERVICES: Final = [
    pytest.param(service, id=f"{file.name}-{name}")
    for file in (FILE, *OVERLAYS)
    for name, service in services_of(file).items()
    if "image" in service
]


@pytest.mark.parametrize("file", [FILE, *OVERLAYS], ids=lambda it: it.name)
def test_it_is_valid_by_the_specification(file: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema"]
    done = subprocess.run(
        [*command, "--builtin-schema", "vendor.compose-spec", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_it_runs_the_same_parts_as_up() -> None:
    brokers = {f"broker-{number}" for number in (101, 102, 103)}
    assert set(services_of(FILE)) == {"metrics", "executor", "dashboard", "demo", *brokers}


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_comes_back_ends_when_told_and_has_no_rights(service: dict[str, Any]) -> None:
    assert service.get("restart", "unless-stopped") == "unless-stopped"
    if "restart" in service:  # whatever an overlay changes keeps the rest
        assert service["init"], "a process 1 without an init may not hear SIGTERM"
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("service", SERVICES)
def test_ports_are_open_on_loopback_alone(service: dict[str, Any]) -> None:
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


@pytest.mark.parametrize("service", SERVICES)
def test_volumes_lie_where_the_image_has_a_folder_for_its_user(service: dict[str, Any]) -> None:
    image = (ROOT / "Dockerfile").read_text()
    for volume in service.get("volumes", ()):
        target = re.sub(r"\$\{.*?\}", "x", volume).split(":")[1]
        assert target.startswith("/etc/") or f" {target}" in image, volume


@pytest.mark.parametrize("service", SERVICES)
def test_every_command_and_flag_exists(service: dict[str, Any]) -> None:
    commands: dict[str, Any] = {command.name: loaded(command) for command in COMMANDS}
    if "entrypoint" in service or "command" not in service:
        return
    command, *flags = service["command"]
    known = {option for param in commands[command].params for option in param.opts}
    used = {flag for flag in flags if flag.startswith("--")}
    assert used <= known, f"{used - known} are no flags of {command}"


def test_clients_inside_and_outside_are_told_addresses_that_they_reach() -> None:
    services = services_of(FILE)
    for name in ("broker-101", "broker-102", "broker-103"):
        config = BrokerConfig.from_properties(broker_properties(services[name]))
        inside, outside = config.listeners.advertised
        assert (inside.host, inside.port) == (name, config.listeners.clients[0].port)
        (published,) = services[name]["ports"]
        host, port, container = re.sub(r"\$\{\w+:-(\d+)\}", r"\1", published).split(":")
        assert (outside.host, str(outside.port)) == (host, port)
        assert container == str(config.listeners.clients[1].port)


def test_every_broker_knows_the_same_voters() -> None:
    services = services_of(FILE)
    names = ("broker-101", "broker-102", "broker-103")
    configs = [BrokerConfig.from_properties(broker_properties(services[it])) for it in names]
    assert len({(config.cluster_id, config.quorum_voters) for config in configs}) == 1
    assert [f"broker-{config.node_id}" for config in configs] == list(names)
    for config in configs:
        assert config.listeners.controller is not None
        own = f"{config.node_id}@broker-{config.node_id}:{config.listeners.controller.port}"
        assert own in config.quorum_voters.split(",")


def broker_properties(service: dict[str, Any]) -> dict[str, str]:
    """Of the text that the service's shell hands to its broker."""
    environment = {
        name: re.sub(r"\$\{\w+:-(\d+)\}", r"\1", str(value))
        for name, value in service["environment"].items()
    }
    (command,) = service["command"]
    text = command.replace("$$", "$").replace("exec partiscope broker --config <(", "")
    done = subprocess.run(
        ["bash", "-c", text.rpartition(")")[0]],
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return parse_properties(done.stdout)


def test_the_page_beyond_loopback_has_a_user_before_it_starts() -> None:
    page = services_of(FILE)["dashboard"]
    (script,) = page["command"]
    added, started = (
        script.index("partiscope users add"),
        script.index("partiscope dashboard --host"),
    )
    assert added < started
    folder = page["environment"]["PARTISCOPE_DATA"]
    assert f"keys:{folder}" in page["volumes"]


def test_who_acts_can_write_key_users_and_journal() -> None:
    for name in ("dashboard", "executor"):
        service = services_of(FILE)[name]
        environment = service["environment"]
        assert Path(environment["PARTISCOPE_PROOF__KEY_FILE"]).parent == Path("/keys"), name
        assert environment["PARTISCOPE_DATA"] == "/keys", name
        assert "keys:/keys" in service["volumes"], name
