"""deploy/: Kubernetes manifests by the schemas of Kubernetes, the unit by systemd itself."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml

from broker.config.broker_config import BrokerConfig
from broker.config.properties import parse_properties
from partiscope.cli.commands import COMMANDS
from partiscope.settings import Settings, load_settings
from tests.support.go_program import GoUnavailableError, install_go_program
from tests.support.isolation import MACHINE
from tests.support.node_cluster import ROOT

DEPLOY: Final = ROOT / "deploy"
KUSTOMIZE: Final = ("sigs.k8s.io/kustomize/kustomize/v5", "v5.6.0")
KUBERNETES: Final = ("1.30", "1.34")
"""The oldest and the newest that the manifests are checked for."""

Manifest = dict[str, Any]


@pytest.fixture(scope="module", params=["demo", "watch"])
def manifests(request: pytest.FixtureRequest) -> list[Manifest]:
    """As `kubectl apply -k` sends them."""
    try:
        kustomize = install_go_program(*KUSTOMIZE)
    except GoUnavailableError as error:
        pytest.skip(f"needs kustomize: {error}")
    done = subprocess.run(
        [kustomize, "build", DEPLOY / "kubernetes" / request.param],
        capture_output=True,
        text=True,
        check=False,
        env=dict(MACHINE),
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, "kustomize warns"
    return list(yaml.safe_load_all(done.stdout))


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", KUBERNETES)
def test_manifests_are_valid_by_their_schemas(manifests: list[Manifest], version: str) -> None:
    for manifest in manifests:
        kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_every_container_is_without_rights(manifests: list[Manifest]) -> None:
    """The pod security standard `restricted`, which the namespace enforces, and more."""
    (namespace,) = (it for it in manifests if it["kind"] == "Namespace")
    labels = namespace["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    pods = list(_pods(manifests))
    assert pods
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
        assert not pod["automountServiceAccountToken"]
        assert not pod["enableServiceLinks"]
        for container in pod["containers"]:
            allowed = container["securityContext"]
            assert allowed["capabilities"] == {"drop": ["ALL"]}
            assert allowed["readOnlyRootFilesystem"]
            assert not allowed["allowPrivilegeEscalation"]
            assert container["resources"]["limits"]["memory"]


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_containers_run_commands_with_settings_that_there_are(
    manifests: list[Manifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {command.name for command in COMMANDS}
    containers = [it for pod in _pods(manifests) for it in pod["containers"]]
    started = [it["args"][0] for it in containers if "command" not in it]
    assert {"metrics", "executor", "dashboard"} <= set(started) <= known
    (settings,) = (
        it["data"]
        for it in manifests
        if it["kind"] == "ConfigMap" and it["metadata"]["name"].startswith("settings")
    )
    if "PARTISCOPE_CONFIG" in settings:
        settings["PARTISCOPE_CONFIG"] = str(DEPLOY / "kubernetes/watch/partiscope.toml")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    loaded: Settings = load_settings()
    assert loaded.bus == settings["PARTISCOPE_BUS"]
    assert bool(loaded.watching) == ("collect" in started)
    assert ("demo" in started) != ("collect" in started)


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_mounted_volumes_are_there(manifests: list[Manifest]) -> None:
    names = {it["metadata"]["name"] for it in manifests if it["kind"] in ("ConfigMap", "Secret")}
    for workload in _workloads(manifests):
        pod = workload["spec"]["template"]["spec"]
        claims = workload["spec"].get("volumeClaimTemplates", ())
        there = {it["name"] for it in pod["volumes"]} | {it["metadata"]["name"] for it in claims}
        mounted = {it["name"] for each in pod["containers"] for it in each["volumeMounts"]}
        assert mounted == there
        for volume in pod["volumes"]:
            source = volume.get("configMap", {}).get("name") or volume.get("secret", {}).get(
                "secretName"
            )
            assert source is None or source in names


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_brokers_find_each_other_by_their_names(manifests: list[Manifest], tmp_path: Path) -> None:
    (properties,) = (
        it["data"]["broker.properties"]
        for it in manifests
        if it["kind"] == "ConfigMap" and it["metadata"]["name"].startswith("broker")
    )
    (brokers,) = (it for it in _workloads(manifests) if it["metadata"]["name"] == "broker")
    (container,) = brokers["spec"]["template"]["spec"]["containers"]
    (tmp_path / "broker.properties").write_text(properties)
    configs = []
    for number in range(brokers["spec"]["replicas"]):
        name = f"broker-{number}"
        config = _config_of(container, name, tmp_path)
        configs.append(config)
        (told,) = config.listeners.advertised
        assert told.host == f"{name}.{brokers['spec']['serviceName']}"
        assert f"{config.node_id}@{told.host}:9093" in config.quorum_voters.split(",")
    assert len({it.node_id for it in configs}) == len({it.rack for it in configs}) == 3
    watched = any(it["kind"] == "Secret" for it in manifests)
    assert [it.metrics_enable for it in configs] == [not watched] * 3


def _config_of(container: Manifest, name: str, folder: Path) -> BrokerConfig:
    """Of the text that the pod's shell hands to its broker."""
    (script,) = container["args"]
    text = script.replace("exec partiscope broker --config <(", "").rstrip().removesuffix(")")
    text = text.replace("/etc/partiscope", str(folder))
    variables = {it["name"]: it["value"] for it in container["env"]}
    done = subprocess.run(
        ["bash", "-c", text],
        env={"PATH": os.environ["PATH"], "HOSTNAME": name, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return BrokerConfig.from_properties(parse_properties(done.stdout))


def _workloads(manifests: list[Manifest]) -> Iterator[Manifest]:
    return (it for it in manifests if it["kind"] in ("StatefulSet", "Deployment"))


def _pods(manifests: list[Manifest]) -> Iterator[Manifest]:
    return (it["spec"]["template"]["spec"] for it in _workloads(manifests))


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with a program that is there."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze, of the package systemd")
    program = tmp_path / "partiscope"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = (DEPLOY / "systemd" / "partiscope.service").read_text()
    assert "\nExecStart=/opt/partiscope/bin/partiscope up" in text
    unit = tmp_path / "partiscope.service"
    unit.write_text(text.replace("/opt/partiscope/bin/partiscope", str(program)))
    return unit


def test_systemd_takes_the_unit_without_a_word(unit: Path) -> None:
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_systemd_finds_the_unit_little_exposed(unit: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=yes", "--threshold=30", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-400:] + done.stderr


def test_the_unit_leaves_spark_its_compiler_and_the_state_its_place(unit: Path) -> None:
    text = unit.read_text()
    assert "MemoryDenyWriteExecute" not in text
    state = re.search(r"^StateDirectory=(\S+)$", text, re.MULTILINE)
    assert state is not None
    assert f"PARTISCOPE_DATA=%S/{state[1]}" in text
