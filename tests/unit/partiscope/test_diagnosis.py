"""What ``partiscope doctor`` says of a store, a Java, and a cluster that is to be started."""

import fcntl
import shlex
import socket
from pathlib import Path
from typing import Any

import pytest

from partiscope.bundled.founded_cluster import LAYOUT_FILE
from partiscope.diagnosis import Check, Verdict, _cluster, _java, _private, _proof, _store
from partiscope.layout import LOCK_FILE, ClusterLayout
from partiscope.settings import ClusterSettings, ProofSettings, Settings
from spark_metrics.store.layout import MANIFEST, SET_ASIDE
from tests.support.phrases import lacking
from tests.support.ports import free_ports_in_a_row
from tests.support.store_builder import StoreBuilder


def test_a_store_that_is_whole_or_not_begun_is_fine(tmp_path: Path) -> None:
    (before,) = _store(str(tmp_path / "none"))
    assert (before.verdict, "not begun" in before.found) == (Verdict.FINE, True)
    StoreBuilder(tmp_path).write({})
    (check,) = _store(str(tmp_path))
    assert (check.verdict, "can be read" in check.found) == (Verdict.FINE, True)


def test_what_was_set_aside_and_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    StoreBuilder(tmp_path).write({})
    (tmp_path / SET_ASIDE / "20261127T023000Z").mkdir(parents=True)
    _, aside = _store(str(tmp_path))
    assert aside.verdict is Verdict.WARNING
    assert "20261127T023000Z" in aside.found
    (tmp_path / MANIFEST).write_text('{"format": 4}')
    (check,) = _store(str(tmp_path))
    assert check.verdict is Verdict.CRITICAL
    assert "format 4" in check.found
    assert "Start the version" in check.next_step


def test_a_store_that_cannot_be_reached_is_told() -> None:
    (check,) = _store("ftp://nowhere/store")
    assert check.verdict is Verdict.CRITICAL
    assert check.next_step


def test_a_data_directory_that_others_can_read_is_told(tmp_path: Path) -> None:
    data = tmp_path / "my data"
    assert list(_private(data)) == []
    data.mkdir()
    data.chmod(0o755)  # whatever this machine's umask takes away
    (told,) = _private(data)
    assert told.verdict is Verdict.WARNING
    assert shlex.split(told.next_step) == ["chmod", "-R", "go=", str(data)]
    data.chmod(0o700)
    assert [it.verdict for it in _private(data)] == [Verdict.FINE]


def test_an_executor_without_proof_and_an_open_key_are_told(tmp_path: Path) -> None:
    key_file = tmp_path / "installation.key"
    proof = ProofSettings(required=False, key_file=key_file)
    settings = Settings(proof=proof)
    (told,) = _proof(settings)
    assert (told.verdict, "proof.required" in told.next_step) == (Verdict.WARNING, True)
    key_file.write_bytes(b"x" * 32)
    for mode, verdict in ((0o644, Verdict.WARNING), (0o600, Verdict.FINE)):
        key_file.chmod(mode)
        *_, told = _proof(settings)
        assert (told.verdict, str(key_file) in told.found) == (verdict, True)


def checks_of(data: Path, **cluster: Any) -> list[Check]:
    """What is found of a bundled cluster in this directory."""
    wanted = ClusterSettings(**{"brokers": 1, "port": free_ports_in_a_row(1), **cluster})
    settings = Settings(data=data, cluster=wanted)
    return [*_cluster(settings, settings.bundled_bootstrap)]


def test_a_cluster_that_can_be_started_is_fine_and_nothing_is_written(tmp_path: Path) -> None:
    found = checks_of(tmp_path / "none")
    assert {it.verdict for it in found[:2]} == {Verdict.FINE}, found
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("offset", [0, 10_000], ids=["of clients", "of controllers"])
def test_a_port_that_another_program_holds_is_told(tmp_path: Path, offset: int) -> None:
    port = free_ports_in_a_row(1)
    with socket.create_server(("127.0.0.1", port + offset)):
        found = checks_of(tmp_path, port=port)
    (told,) = (it for it in found if f":{port + offset}" in it.found)
    assert told.verdict is Verdict.CRITICAL
    assert not lacking(told.next_step, "--port")


def test_a_directory_that_holds_another_cluster_or_is_spoilt_is_told(tmp_path: Path) -> None:
    ClusterLayout.prepare(tmp_path, ClusterSettings(brokers=3))
    (fewer,) = checks_of(tmp_path, brokers=1)
    (other,) = checks_of(tmp_path, brokers=3, first_id=7)
    (tmp_path / LAYOUT_FILE).write_text("{")
    (spoilt,) = checks_of(tmp_path, brokers=3)
    for told, words in ((fewer, "--brokers 3"), (other, "first_id = 101"), (spoilt, "--data")):
        assert told.verdict is Verdict.CRITICAL
        assert not lacking(told.next_step, words)


def test_a_property_that_no_broker_starts_with_is_told(tmp_path: Path) -> None:
    (told,) = checks_of(tmp_path, overrides={"log.segment.bytes": "big"})
    assert told.verdict is Verdict.CRITICAL
    assert not lacking(told.found, "log.segment.bytes=big")


def test_brokers_that_run_from_the_directory_are_asked(tmp_path: Path) -> None:
    port = free_ports_in_a_row(1)
    with socket.create_server(("127.0.0.1", port)), (tmp_path / LOCK_FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (told,) = checks_of(tmp_path, port=port)
    assert (told.name, told.verdict) == ("broker", Verdict.FINE)


def test_a_heap_that_java_refuses_is_told() -> None:
    assert _java("64m").verdict is Verdict.FINE
    told = _java("900000g")
    assert told.verdict is Verdict.CRITICAL
    assert not lacking(told.found, "900000g")
    assert not lacking(told.next_step, "metrics.driver_memory")
