"""What ``partiscope doctor`` says of a store."""

import shlex
from pathlib import Path

from partiscope.diagnosis import Verdict, _private, _proof, _store
from partiscope.settings import ProofSettings, Settings
from spark_metrics.store.layout import MANIFEST, SET_ASIDE
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
