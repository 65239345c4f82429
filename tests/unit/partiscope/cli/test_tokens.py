"""``partiscope tokens`` as the documents type it: shown once, kept hashed, listed, removed."""

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from control.access.login import TokenRefusedError
from control.access.roles import BUILT_IN, OPERATOR
from partiscope.access.tokens_file import TokensFile
from partiscope.cli.app import run
from partiscope.cli.shared.exits import Exit

Typed = Callable[..., tuple[int, str]]


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Typed:
    """Runs a command with a settings file that names a cluster."""
    settings = tmp_path / "partiscope.toml"
    settings.write_text('[clusters.prod]\nbootstrap = "127.0.0.1:1"\n')
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(settings))
    monkeypatch.setenv("PARTISCOPE_DATA", str(tmp_path / "data"))

    def type_(*words: str) -> tuple[int, str]:
        return run(["tokens", *words]), capsys.readouterr().out

    return type_


def test_a_token_is_shown_once_and_kept_hashed(typed: Typed, tmp_path: Path) -> None:
    status, told = typed("add", "nightly", "--role", "operator", "--on", "prod")
    secret, path = told.strip(), tmp_path / "data" / "tokens.json"
    assert (status, stat.S_IMODE(path.stat().st_mode)) == (Exit.DONE, 0o600)
    assert secret not in path.read_text()
    for words in (["list"], ["list", "--json"], ["describe", "nightly"],
                  ["describe", "nightly", "--json"]):  # fmt: skip
        assert secret not in typed(*words)[1]
    login = TokensFile(path, BUILT_IN).login(secret, address="10.0.0.5")
    assert login.who == "token:nightly (api, 10.0.0.5)"
    assert (login.role_on("prod"), login.role_on("other")) == (OPERATOR, None)


def test_tokens_are_listed_described_and_removed(typed: Typed, tmp_path: Path) -> None:
    status, told = typed("add", "a", "--expires", "1h", "--json")
    secret = json.loads(told)["token"]
    assert (status, json.loads(told)["roles"]) == (Exit.DONE, {"*": "viewer"})
    (found,) = json.loads(typed("list", "--json")[1])["tokens"]
    assert (found["name"], found["is_expired"], found["last_use"]) == ("a", False, None)
    described = json.loads(typed("describe", "a", "--json")[1])
    assert [it["role"] for it in described["roles"]] == ["viewer"]
    tokens = TokensFile(tmp_path / "data" / "tokens.json", BUILT_IN)
    tokens.maybe_note_use(secret)
    assert json.loads(typed("list", "--json")[1])["tokens"][0]["last_use"].startswith("20")
    assert typed("remove", "a")[0] == Exit.DONE
    with pytest.raises(TokenRefusedError):
        tokens.login(secret, address="")
    tokens.maybe_note_use(secret)
    assert tokens.tokens() == {}


def test_what_cannot_be_is_refused_and_nothing_is_written(typed: Typed, tmp_path: Path) -> None:
    for words in (
        ["add", "a/b"], ["add", ""], ["add", "a", "--role", "none"], ["add", "a", "--on", "none"],
        ["add", "a", "--expires", "0s"], ["add", "a", "--expires", "400d"], ["remove", "none"],
        ["add", "a", "--expires", "never"], ["describe", "none"],
    ):  # fmt: skip
        assert typed(*words)[0] == Exit.WRONG_USE, words
    path = tmp_path / "data" / "tokens.json"
    assert not path.exists()
    assert typed("add", "a")[0] == Exit.DONE
    before = path.read_bytes()
    assert typed("add", "a")[0] == Exit.WRONG_USE  # it would end the first without a word
    assert path.read_bytes() == before


def test_a_file_that_is_none_lets_nobody_in(typed: Typed, tmp_path: Path) -> None:
    secret = typed("add", "a")[1].strip()
    path = tmp_path / "data" / "tokens.json"
    whole = path.read_text()
    tokens = TokensFile(path, BUILT_IN)
    for content in ("", "{", "[]", whole.replace('"format": 1', '"format": 2'),
                    whole.replace('"*"', "7"), whole.replace('"used_ms": null', '"used_ms": "x"'),
                    whole.replace('"roles"', '"rules"')):  # fmt: skip
        path.write_text(content)
        with pytest.raises(TokenRefusedError):
            tokens.login(secret, address="")
        assert typed("list")[0] == Exit.WRONG_USE
    path.write_text(whole)
    assert tokens.login(secret, address="").name == "token:a"


def test_time_ends_a_token(typed: Typed, tmp_path: Path) -> None:
    secret = typed("add", "a", "--expires", "1h")[1].strip()
    path = tmp_path / "data" / "tokens.json"
    ends_ms = TokensFile(path, BUILT_IN).tokens()["a"].expires_ms
    at = TokensFile(path, BUILT_IN, clock_ms=lambda: ends_ms - 1)
    assert at.login(secret, address="").name == "token:a"
    with pytest.raises(TokenRefusedError, match="expired"):
        TokensFile(path, BUILT_IN, clock_ms=lambda: ends_ms).login(secret, address="")
