"""Tab in a real bash: names of the cluster, words that the shell takes, its cost, and silence."""

import asyncio
import os
import pty
import re
import resource
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Self

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import NewTopic
from control.model.ids import TopicPartition
from partiscope.installation import Installation
from tests.support.cluster import LocalCluster
from tests.support.patience import WAIT_S, patience_s
from tests.support.settle import wait_until
from tests.support.silent import hung_listener, lost_listener

SPACED: Final = """qbill it's "x" $HOME \\ `end`"""
COLONS: Final = "qteam:eu:reader"
CPU_S: Final = 0.1
PROMPT: Final = "ready> "


class Bash:
    """An interactive bash in which the words of a command line are written in place of run."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self._master, slave = pty.openpty()
        script = subprocess.check_output(
            (sys.executable, "-m", "partiscope"),
            env={**os.environ, "_PARTISCOPE_COMPLETE": "source_bash"},
            text=True,
        )
        (folder / "rc").write_text(
            f"{script}\nPS1='{PROMPT}'\nbind 'set enable-bracketed-paste off'\n"
            "partiscope() { printf '<%s>' \"$@\"; echo; }\n"
        )
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._process = subprocess.Popen(
            ("bash", "--rcfile", str(folder / "rc"), "-i"),
            stdin=slave, stdout=slave, stderr=slave, cwd=folder, start_new_session=True,
            env={**os.environ, "PATH": programs, "TERM": "dumb", "COLUMNS": "500", **variables},
        )  # fmt: skip
        os.close(slave)
        self._until(PROMPT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(WAIT_S)
        os.close(self._master)

    def words(self, typed: str) -> str:
        """The words of a line after Tab and Enter."""
        os.write(self._master, f"partiscope {typed}\t\n".encode())
        return self._until(f"\n{PROMPT}").splitlines()[-2]

    def _until(self, word: str) -> str:
        read, until_s = b"", time.monotonic() + WAIT_S
        while word not in read.decode(errors="replace").replace("\r", ""):
            assert time.monotonic() < until_s, read
            if select.select([self._master], [], [], 0.1)[0]:
                read += os.read(self._master, 65536)
        return read.decode().replace("\r", "")


def until_pressed(press: Callable[[], bool], typed: str) -> None:
    """A busy cluster answers too late now and then, and nothing is completed: who types presses
    Tab again."""
    wait_until(press, f"names for {typed!r}")


async def _fill(bootstrap: str) -> None:
    async with KafkaAdmin.to(bootstrap) as admin:
        for name in ("shipments", "qrefunds-eu", "qrefunds-us"):
            topic = NewTopic(name=name, partitions=1, replication_factor=1, configs={})
            await admin.create_topic(topic)
        for group in (SPACED, COLONS):
            await admin.groups.commit_offsets(group, {TopicPartition("shipments", 0): 0})


@pytest.fixture(scope="module")
def address(our_cluster: LocalCluster) -> str:
    asyncio.run(_fill(our_cluster.bootstrap))
    return our_cluster.bootstrap


@pytest.fixture
def bash(address: str, tmp_path: Path) -> Iterator[Bash]:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    with Bash(tmp_path, PARTISCOPE_BOOTSTRAP=address) as opened:
        yield opened


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("topics describe shi", "<topics><describe><shipments>"),
        ("topics describe qrefunds-e", "<topics><describe><qrefunds-eu>"),
        ("topics describe qref", "<topics><describe><qrefunds->"),
        ("partitions --topic shi", "<partitions><--topic><shipments>"),
        ("partitions --topic=shi", "<partitions><--topic=shipments>"),
        ("topics delete shipments qrefunds-u", "<topics><delete><shipments><qrefunds-us>"),
        ("plan --topics shipments,qrefunds-u", "<plan><--topics><shipments,qrefunds-us>"),
        ("brokers describe 10", "<brokers><describe><10>"),
        ("configs describe broker:102", "<configs><describe><broker:102>"),
        ("configs describe ship", "<configs><describe><shipments>"),
        ("topics alter shipments --config retention.m",
         "<topics><alter><shipments><--config><retention.ms=>"),
        ("groups describe qbil", f"<groups><describe><{SPACED}>"),
        ("groups describe 'qbil", f"<groups><describe><{SPACED}>"),
        ('groups describe "qbil', f"<groups><describe><{SPACED}>"),
        ("groups describe qbill\\ it", f"<groups><describe><{SPACED}>"),
        ("groups describe qte", f"<groups><describe><{COLONS}>"),
        ("groups describe qteam:", f"<groups><describe><{COLONS}>"),
        ("groups describe qteam:eu:r", f"<groups><describe><{COLONS}>"),
        ("groups describe 'qteam:eu", f"<groups><describe><{COLONS}>"),
        ("moves rollb", "<moves><rollback>"),
        ("stat", "<status>"),
        ("topics list --inter", "<topics><list><--internal>"),
    ],
)  # fmt: skip
def test_bash_takes_what_tab_completes(bash: Bash, typed: str, words: str) -> None:
    until_pressed(lambda: bash.words(typed) == words, typed)


def _tab(*words: str, **variables: str) -> tuple[str, str, float, float]:
    """What a press writes on both streams, its CPU and its time."""
    line = ("partiscope", *words)
    asked = {"_PARTISCOPE_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(line),
             "COMP_CWORD": str(len(words))}  # fmt: skip
    before, began_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        (str(Path(sys.executable).parent / "partiscope"),),
        env={**os.environ, **asked, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    took_s, after = time.monotonic() - began_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = sum(getattr(after, it) - getattr(before, it) for it in ("ru_utime", "ru_stime"))
    return done.stdout, done.stderr, cpu_s, took_s


@pytest.mark.parametrize("words", [("topics", "describe", "ship"), ("groups", "describe", "qteam")])
def test_a_tab_costs_a_tenth_of_a_second(address: str, words: tuple[str, ...]) -> None:
    until_pressed(lambda: bool(_tab(*words, PARTISCOPE_BOOTSTRAP=address)[0]), words[-1])
    pressed = [_tab(*words, PARTISCOPE_BOOTSTRAP=address) for _ in range(5)]
    assert {told for told, *_ in pressed if told} <= {"shipments\n", f"{COLONS}\n"}
    assert min(cpu_s for *_, cpu_s, _ in pressed) <= patience_s(CPU_S)


@pytest.mark.parametrize("listener", [hung_listener, lost_listener])
@pytest.mark.parametrize("resource_", ["topics", "groups"])
def test_a_cluster_that_is_silent_completes_nothing(
    listener: Callable[[], AbstractContextManager[str]], resource_: str
) -> None:
    with listener() as silent:
        told, said, _, took_s = _tab(resource_, "describe", "", PARTISCOPE_BOOTSTRAP=silent)
    assert (told, said) == ("", "")
    assert took_s <= patience_s(1.0)


@pytest.mark.parametrize("record", ["", "no JSON", "[]", '{"watched": 5}', '{"watched": {}}'])
def test_a_damaged_record_of_what_runs_is_silent(tmp_path: Path, record: str) -> None:
    (tmp_path / "installation.json").write_text(record)
    told, said, *_ = _tab("topics", "describe", "", PARTISCOPE_DATA=str(tmp_path))
    assert (told, said) == ("", "")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("groups describe ", SPACED),
        ("groups describe qte", COLONS),
        ("groups describe qbill\\ ", SPACED),
        ("groups describe 'qbill it", SPACED),
        ('groups describe "qbill it\'s \\"x', SPACED),
        ("topics describe 'ship'", "shipments"),
    ],
)
def test_fish_and_zsh_get_the_names_of_a_typed_line(address: str, line: str, name: str) -> None:
    typed = {"_TYPER_COMPLETE_ARGS": f"partiscope {line}", "PARTISCOPE_BOOTSTRAP": address}
    fish = {"_PARTISCOPE_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    until_pressed(lambda: name in _tab(**typed, **fish)[0].splitlines(), line)

    def of_zsh() -> list[str]:
        told, *_ = _tab(**typed, _PARTISCOPE_COMPLETE="complete_zsh")
        array = shlex.split(told.partition("(")[2].rpartition(")")[0])
        return [re.sub(r"\\(.)", r"\1", each) for each in array]

    until_pressed(lambda: name in of_zsh(), line)


@pytest.mark.parametrize("words", [(), ("--data", "elsewhere")])
def test_the_cluster_of_the_data_directory_is_asked(
    address: str, tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PARTISCOPE_BOOTSTRAP", raising=False)
    monkeypatch.delenv("PARTISCOPE_DATA", raising=False)
    Installation(bus=address).save(Path("elsewhere" if words else "data"))
    until_pressed(lambda: _tab("topics", "describe", *words, "shi")[0] == "shipments\n", "shi")
