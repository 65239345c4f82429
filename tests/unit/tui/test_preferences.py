"""The look that somebody chose is there at the next start; a broken file harms nothing."""

import os
from pathlib import Path

import pytest

from control.messages.state_file import state_file
from tests.support.settle import settle
from tui.app import PartiscopeApp
from tui.preferences import FILE, Preferences
from tui.terminal_session import Services

BROKEN = [
    "",
    "{",
    "[]",
    "null",
    '{"theme": 7}',
    "\x00\xff",
    '{"theme": "no-such-theme"}',
    "[" * 9_999,
]


async def test_a_theme_is_there_at_the_next_start(services: Services, tmp_path: Path) -> None:
    file = tmp_path / "state" / "partiscope" / "terminal.json"
    app = PartiscopeApp(services, preferences=Preferences(file))
    async with app.run_test() as pilot:
        await settle(pilot, lambda: bool(app.screen.children), "the overview")
        app.theme = "gruvbox"
        await settle(pilot, file.exists, "kept")
    assert [item.name for item in file.parent.iterdir()] == ["terminal.json"]
    assert PartiscopeApp(services, preferences=Preferences(file)).theme == "gruvbox"
    assert PartiscopeApp(services).theme != "gruvbox"


@pytest.mark.parametrize("words", BROKEN)
def test_a_broken_file_means_nothing_was_chosen(
    words: str, services: Services, tmp_path: Path
) -> None:
    file = tmp_path / "terminal.json"
    file.write_text(words, encoding="latin-1")
    usual = PartiscopeApp(services).theme
    assert PartiscopeApp(services, preferences=Preferences(file)).theme == usual
    Preferences(file).keep_theme("nord")
    assert Preferences(file).theme == "nord"


def test_a_directory_in_its_place_means_nothing_was_chosen(tmp_path: Path) -> None:
    assert Preferences(tmp_path).theme == ""
    with pytest.raises(OSError, match="directory"):
        Preferences(tmp_path).keep_theme("nord")


async def test_a_theme_that_cannot_be_kept_is_told_and_shown(
    services: Services, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    app = PartiscopeApp(services, preferences=Preferences(tmp_path / "file" / "terminal.json"))
    async with app.run_test() as pilot:
        await settle(pilot, lambda: bool(app.screen.children), "the overview")
        app.theme = "nord"
        await settle(pilot, lambda: bool(app._notifications), "why not")
        assert "not kept" in next(iter(app._notifications)).message


def test_it_is_in_the_users_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere")
    assert state_file(FILE) == Path("/somewhere/partiscope/terminal.json")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert state_file(FILE) == Path("/home/me/.local/state/partiscope/terminal.json")
    assert os.path.isabs(str(state_file(FILE)))
