"""Which Java is taken, and what is said when none will do."""

from pathlib import Path

import pytest

from spark_metrics.job import java


def _install(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java but for what the test puts into ``jvm``."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "_PLACES", (str(tmp_path / "jvm"),))
    monkeypatch.setattr(java, "_HOMEBREW", ())
    return tmp_path / "jvm"


def test_the_first_usable_version_wins(bare_machine: Path) -> None:
    _install(bare_machine / "java-11", "11.0.2")
    _install(bare_machine / "java-21", "21.0.4")
    _install(bare_machine / "java-8", "1.8.0_402")
    assert java.find_java() == java.Java(home=bare_machine / "java-21", version=21)


def test_java_home_comes_before_the_usual_places(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(bare_machine / "java-21", "21.0.4")
    chosen = _install(bare_machine.parent / "mine", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(chosen))
    assert java.find_java().home == chosen


def test_a_java_too_new_is_named_with_what_to_type(
    bare_machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _install(bare_machine / "java-23", "23")
    assert java.main([]) == 1
    said = capsys.readouterr().err
    assert "found only Java 23" in said
    assert "apt-get install -y openjdk-17-jre-headless" in said


def test_no_java_at_all(bare_machine: Path) -> None:
    with pytest.raises(java.JavaMissingError, match="no Java was found"):
        java.find_java()
