"""Settings of any type and text: taken, or refused by name; never another error."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

from partiscope.cli.app import run
from partiscope.settings import NamedCluster, Settings, SettingsError, load_settings, usual_data
from tests.support.phrases import lacking

_LONG: Final = "9" * 5_000
_VALUES: Final = (
    *("5", "-1", "true", "1.5", "inf", "nan", _LONG, "9223372036854775808"),
    *("1979-05-27", "1979-05-27T07:32:00Z", "07:32:00", "[]", "[1]", "[[]]", "{}", "[{}]"),
    *('""', r'"a\u0000b"', r'"\u001b[2J"', r'"x\ny"', f'"{_LONG}"', '"²"', '"٣"', '"."'),
    *('"/dev/null"', '"[::1]:9092"', '"a..b:9092"', '"h:99999999"', '"http://u:p@h/x"'),
)


def _paths(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield name
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            yield from (f"{name}.{path}" for path in _paths(section))


_PATHS: Final = (
    *_paths(Settings),
    *("clusters.x", *(f"clusters.x.{name}" for name in NamedCluster.model_fields)),
    *(r'clusters."\u001b[2J".bootstrap', 'clusters."".bootstrap', "cluster.overrides.x", '"²"'),
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings file, in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PARTISCOPE_CONFIG", raising=False)
    return tmp_path / "partiscope.toml"


def _use() -> None:
    """What a command asks of its settings at its start."""
    settings = load_settings()
    usual_data().exists()
    settings.kafka_connections()
    settings.watched()
    for path in (settings.key_file, Path(settings.store), Path(settings.checkpoint)):
        path.exists()
    assert settings.bundled_bootstrap
    assert settings.journal_hold_s > 0


@pytest.mark.parametrize("path", _PATHS)
def test_an_odd_value_is_taken_or_refused_in_one_line(file: Path, path: str) -> None:
    for value in _VALUES:
        file.write_text(f"{path} = {value}\n")
        try:
            _use()
        except SettingsError as error:
            text = str(error)
            assert len(text) < 500, value
            assert text.isprintable(), value


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (r'data = "a\u0000b"', "data x00 remove"),
        (r'metrics.store = "a\nb"', "metrics.store remove"),
        (r'clusters."\u001b".bootstrap = "h:1"', "name x1b remove"),
        ('data = ""', "data empty leave"),
        ('proof.further_key_files = [""]', "further_key_files.0 empty"),
        ('metrics.store = ""', "metrics.store at least 1 character"),
        ("cluster.port = true", "cluster.port True number"),
        ("dashboard.port = true", "dashboard.port number"),
        ("cluster.first_id = 2147483648", "cluster.first_id 2147483647"),
        ('cluster.host = "a..b"', "cluster.host a..b host"),
        ('dashboard.host = "a b"', "dashboard.host host"),
        ('bus = "a..b:9092"', "bus a..b:9092 HOST:PORT"),
        ("connection.config_file = 5", "connection.config_file path"),
        (f'cluster_id = "{_LONG}"', "cluster_id 4,096"),
    ],
)
def test_what_is_refused_is_named(file: Path, line: str, told: str) -> None:
    file.write_text(line + "\n")
    with pytest.raises(SettingsError) as refused:
        load_settings()
    assert not lacking(str(refused.value), *told.split())


def test_a_password_with_a_control_character_is_not_quoted(file: Path) -> None:
    file.write_text('connection.password = "hunter2\\u0007"\n')
    with pytest.raises(SettingsError) as refused:
        load_settings()
    assert "connection.password" in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["a=" + "[" * 100_000, "data=" + "{a=" * 5_000 + "1" + "}" * 5_000]
)
def test_a_file_that_is_nested_deeply_is_refused(
    file: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    assert run(["status"]) == 2
    assert not lacking(capsys.readouterr().err, "partiscope.toml", "deeper")


@pytest.mark.parametrize("text", ["[" * 100_000, json.dumps({"a": {"bootstrap": "h:\u0000"}})])
def test_a_variable_that_is_nested_deeply_or_odd_is_refused(
    file: Path, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PARTISCOPE_CLUSTERS", text)
    assert run(["status"]) == 2
    assert "bad settings" in capsys.readouterr().err


@pytest.mark.parametrize("bootstrap", ["a..b:9092", f"{'x' * 64}:9092", "[a..b]:9092", "h:0"])
def test_an_address_that_no_resolver_takes_is_refused(
    file: Path, bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["status", "--bootstrap", bootstrap]) == 2
    told = capsys.readouterr().err
    assert bootstrap in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("variables", "path", "value"),
    [
        ({"CLUSTER": '{"port": 8, "racks": "ab"}', "CLUSTER__PORT": "7"}, "cluster.port", 7),
        ({"CLUSTER": '{"port": 8, "racks": "ab"}', "CLUSTER__PORT": "7"}, "cluster.racks", "ab"),
        ({"CLUSTERS__A__BOOTSTRAP": "h:1"}, "clusters.a.color", "red"),
        ({"CLUSTERS__A__COLLECT": '{"interval_ms": 500}'}, "clusters.a.collect.interval_ms", 500),
        ({"WATCH": '["a"]'}, "watch", ("a",)),
        ({"CLUSTER__OVERRIDES__X": "5"}, "cluster.overrides.x", "5"),
        ({"BOOTSTRAP": "5"}, "bootstrap", "5"),
    ],
)
def test_the_environment_is_laid_over_the_file(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variables: dict[str, str],
    path: str,
    value: object,
) -> None:
    file = tmp_path / "partiscope.toml"
    file.write_text('[clusters.a]\nbootstrap = "a:1"\ncolor = "red"\n[cluster]\nport = 9\n')
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(file))
    for name, text in variables.items():
        monkeypatch.setenv(f"PARTISCOPE_{name}", text)
    found: Any = load_settings()
    for name in path.split("."):
        found = found[name] if isinstance(found, dict) else getattr(found, name)
    assert found == value


def test_a_list_that_is_no_json_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTISCOPE_WATCH", "prod")
    with pytest.raises(SettingsError, match=r"watch.*JSON"):
        load_settings()
