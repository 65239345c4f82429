"""``partiscope users`` as the documents type it: added, given roles, described, removed."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from partiscope.cli.app import run
from partiscope.cli.shared.exits import Exit

Typed = Callable[..., tuple[int, str]]


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Typed:
    """Runs a command with a settings file that names a cluster; a password is on its input."""
    settings = tmp_path / "partiscope.toml"
    settings.write_text('[clusters.prod]\nbootstrap = "127.0.0.1:1"\n')
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(settings))
    monkeypatch.setenv("PARTISCOPE_DATA", str(tmp_path / "data"))

    def type_(*words: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO("correct horse\n"))
        return run(["users", *words]), capsys.readouterr().out

    return type_


def test_users_come_get_roles_and_go(typed: Typed) -> None:
    assert typed("add", "alice", "--role", "admin")[0] == Exit.DONE
    status, told = typed("add", "bob", "--role", "viewer", "--json")
    assert (status, json.loads(told)["roles"]) == (Exit.DONE, {"*": "viewer"})
    assert typed("role", "bob", "operator", "--on", "prod")[0] == Exit.DONE
    found = json.loads(typed("describe", "bob", "--json")[1])
    rights = {it["cluster"]: (it["role"], it["reads_records"]) for it in found["roles"]}
    assert rights == {"*": ("viewer", False), "prod": ("operator", True)}
    assert "reassign" in typed("describe", "bob")[1]
    assert typed("remove", "bob")[0] == Exit.DONE
    assert [it["name"] for it in json.loads(typed("list", "--json")[1])["users"]] == ["alice"]
    assert typed("describe", "bob")[0] == Exit.WRONG_USE
