"""Every command with odd words, files and addresses: an exit status of the contract, a line that
says what is wrong, and never a traceback."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from partiscope.cli.app import run
from partiscope.cli.commands import COMMANDS, loaded
from partiscope.cli.shared.exits import Exit
from partiscope.cli.shared.streams import settle_streams
from tests.support.cluster import LocalCluster

SERVE: Final = frozenset({it.name for it in COMMANDS if it.is_service} | {"tui", "alerts run"})
"""They go on until they are ended: only with words that they must refuse."""
ODD_ADDRESSES: Final = (
    "127.0.0.1:99999", "127.0.0.1:0", "127.0.0.1:-1", "127.0.0.1:", ":9092", "nonsense", "a b:1",
    ",", "", "127.0.0.1:²", "[::1:9092", "\udcff:1", "x" * 300 + ":9092",
)  # fmt: skip
ODD_TEXTS: Final = ("", " ", "\udcff", "\x1b[2J", "../..", "x" * 5000, "-1", "99999999999999999999")
ADDRESSES: Final = ("bootstrap", "bus", "reach")
HARMFUL: Final = ("count", "rate")
"""As many records as an odd word asks for would be sent."""
ENDS: Final = "--exit-at-end"
"""A topic that another try has created would be followed for ever."""
_STATUSES: Final = frozenset(Exit)


@dataclass(frozen=True)
class Leaf:
    """A command without subcommands."""

    words: tuple[str, ...]
    params: tuple[Any, ...]

    @property
    def name(self) -> str:
        return " ".join(self.words)

    @property
    def is_server(self) -> bool:
        return not SERVE.isdisjoint({self.words[0], " ".join(self.words)})

    def has(self, option: str) -> bool:
        return any(option in param.opts for param in self.params)


def _leaves(command: Any, words: tuple[str, ...] = ()) -> Iterator[Leaf]:
    if hasattr(command, "list_commands"):
        context = typer.Context(command)
        for name in command.list_commands(context):
            yield from _leaves(command.get_command(context, name), (*words, name))
    else:
        yield Leaf(words, tuple(command.params))


LEAVES: Final = tuple(
    leaf for command in COMMANDS for leaf in _leaves(loaded(command), (command.name,))
)


def _ends_well(
    capsys: pytest.CaptureFixture[str], words: list[str], *, is_refused: bool = False
) -> None:
    """An exception that is no operator's would come through here."""
    settle_streams(words)
    status = run(words)
    told = capsys.readouterr()
    assert status in _STATUSES, words
    assert "Traceback" not in told.err, words
    if is_refused:
        assert status not in (Exit.DONE, Exit.INTERRUPTED), words
    if status not in (Exit.DONE, Exit.FINDING):
        assert (told.err + told.out).strip(), words


def _required(leaf: Leaf, files: dict[str, Path]) -> list[str]:
    """The words that a command cannot do without."""
    given: list[str] = []
    for param in leaf.params:
        if param.required:
            word = {int: "1", Path: str(files["json"])}.get(param.bare_type, "no-such")
            given += [word] if param.param_type_name == "argument" else [param.opts[0], word]
    return given


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Files that are not what they should be."""
    found = {name: tmp_path / name for name in ("json", "binary", "list", "empty", "secret")}
    found["json"].write_text("{}")
    found["binary"].write_bytes(b"\xff\xfe\x00\x01")
    found["list"].write_text("[1, [2]]")
    found["empty"].write_bytes(b"")
    found["folder"] = tmp_path
    found["nowhere"] = tmp_path / "no" / "where"
    return found


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, our_cluster: LocalCluster) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARTISCOPE_BOOTSTRAP", our_cluster.bootstrap)
    monkeypatch.setenv("PARTISCOPE_BUS", our_cluster.bootstrap)
    monkeypatch.setenv("PARTISCOPE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("PARTISCOPE_METRICS__STORE", str(tmp_path / "store"))


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_odd_words(leaf: Leaf, files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Every parameter with one odd word, another one at each command."""
    for number, tries in enumerate(_tries(leaf, files), LEAVES.index(leaf)):
        _ends_well(capsys, tries[number % len(tries)], is_refused=leaf.is_server)


@pytest.mark.soak
@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_all_odd_words(
    leaf: Leaf, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for words in chain.from_iterable(_tries(leaf, files)):
        _ends_well(capsys, words, is_refused=leaf.is_server)


def _tries(leaf: Leaf, files: dict[str, Path]) -> Iterator[list[list[str]]]:
    """For each parameter, the command line with each of its odd words."""
    required, ends = _required(leaf, files), [ENDS] if leaf.has(ENDS) else []
    for param in leaf.params:
        if param.is_eager or param.name in HARMFUL:
            continue
        if leaf.is_server and param.name not in ADDRESSES:
            continue
        odd = _odd_words(param, files)
        if param.param_type_name == "argument":
            tries = [[*leaf.words, *ends, word] for word in odd]
        else:
            given = [*leaf.words, *ends, *required]
            tries = [[*given, f"{param.opts[0]}={word}"] for word in odd]
        if tries:
            yield tries


def _odd_words(param: Any, files: dict[str, Path]) -> tuple[str, ...]:
    if getattr(param, "is_flag", False):
        return ()
    if param.name in ADDRESSES:
        return ODD_ADDRESSES
    paths = tuple(str(path) for path in files.values())
    return (*ODD_TEXTS, *paths) if param.bare_type is Path or param.name == "edit" else ODD_TEXTS
