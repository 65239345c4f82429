"""Every command that README and documents tell to type is typed, in the documents' order.

Here: whatever ends by itself, beside one product with its demo load. Blocks that start something
are typed in ``test_documented_starts``. `NOT_TYPED` names the rest, each with its reason.
"""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from partiscope.cli.app import run
from partiscope.cli.shared.exits import Exit
from partiscope.journal_chain import ChainFile
from tests.support import history_examples
from tests.support.documented import DOCUMENTS, documented_shell_lines, is_start, words_of
from tests.support.installation import Installation
from tests.support.kafka_eyes import KafkaEyes
from tests.support.kafka_oracle import run_tool
from tests.support.node_cluster import ROOT
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until
from tests.support.typed import CTRL_C, Typed

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(240)]

NOT_TYPED: Final = {
    "git clone ": "the checkout is there",
    "uv ": "installs from the network; tests/contract/test_kerberos.py and the notebook's test "
    "run what it installs",
    "docker ": "needs a container runtime; tests/e2e/test_containers.py runs its files",
    "partiscope backup": "`up` runs; tests/contract/test_backups.py ends it first",
    "partiscope restore": "`up` runs; tests/contract/test_backups.py ends it first",
    "partiscope down": "it ends `up`; tests/contract/test_down.py types it",
    "ssh ": "needs another machine; ssh itself reads its words below",
    "partiscope users": "others would lack a role then; tests/unit/partiscope/cli/test_users.py",
    "kafka-acls.sh ": "brokers of `up` have no authorizer; tests/contract/test_told_rights.py "
    "grants by the commands that are told",
    "python -m spark_metrics.job.set_up": "`make setup` ran it, or no test of Spark runs",
    "python -m spark_metrics.buckets.": "tests/spark/test_submitted_job.py submits what it writes",
    "python -m benchmarks.": "hours; its words are read below",
    "partiscope alerts run": "it runs until it is ended; tests/contract/test_alert_delivery.py",
    "partiscope alerts test": "needs a receiver; tests/contract/test_alert_commands.py",
    "partiscope alerts backtest": "needs rules; tests/contract/test_alert_commands.py",
    "partiscope alerts unsilence": "needs a silence; tests/contract/test_alert_delivery.py",
    "make ": "`make up` is typed in test_documented_starts; others are read below",
}
"""By their first words."""
STATUSES: Final = {
    "partiscope moves throttle": Exit.REFUSED,  # the move has ended, as all that these stop
    "partiscope moves pause": Exit.REFUSED,
    "partiscope moves resume": Exit.REFUSED,
    "partiscope moves cancel": Exit.REFUSED,
    "tail -f": CTRL_C,
}
"""Other statuses than 0, by first words: the reason is that of the demo cluster."""
VERDICTS: Final = {
    "partiscope status": Exit.FINDING,
    "partiscope check": Exit.REFUSED,
    "partiscope reassign plan.json --yield-to-consumers slow": Exit.REFUSED,  # moved by now
    "partiscope reassign plan.json --throttle 20MiB --start": Exit.REFUSED,
}
"""Statuses besides that tell how the cluster or a plan is."""
AS_FAR_AS: Final = {
    "partiscope tail ": "--exit-at-end",  # its reader ends it by Ctrl-C
    "partiscope reassign plan.json --throttle 20MiB --start": "--dry-run",  # it waits for the night
    "partiscope brokers drain": "--dry-run",  # its reader stops the broker: test_draining does
}
"""Flags that end a command for which a reader would be needed, by first words."""
AND_THEN: Final = {
    "partiscope brokers cordon 103": "partiscope brokers uncordon 103 --yes",
    "partiscope tokens add nightly": "partiscope tokens remove nightly",
}
"""Whatever would hinder the next commands, undone."""


@pytest.fixture(scope="module")
def product(up: Installation, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The product with what a demo load leaves, and what a reader's own cluster has besides."""
    demo = Typed(f"partiscope demo --bootstrap {up.bootstrap}", tmp_path_factory.mktemp("demo"), {})
    assert demo.says("^ready"), demo.said
    KafkaEyes(up.bootstrap).create("logs", {0: [101, 102, 103]})
    producer = Producer({"bootstrap.servers": up.bootstrap, "log_level": 0})
    for number in range(1_300):
        producer.produce("orders", key=f"user-{number}", value='{"total": 1}', partition=3)
    assert producer.flush(WAIT_S) == 0
    billing = ["groups", "describe", "billing", "--bootstrap", up.bootstrap]
    wait_until(lambda: run(billing) == Exit.DONE, "the demo's groups", timeout_s=30)
    demo.end()  # so that moves need not spare producers, and groups have no members
    return up


class Reader:
    """Follows one document in a folder of its own."""

    def __init__(self, folder: Path, product: Installation) -> None:
        self.folder, self.product = folder, product
        self.environment = {"PARTISCOPE_DATA": str(product.data)}
        self.move = ""
        (folder / "keys.txt").write_text("User123\nUser456\n")
        (folder / "orders.txt").write_text("a:1\nb:2\n")
        (folder / "orders.jsonl").write_text('{"key": "k", "value": "v"}\n')
        (folder / "app.log").write_text("a line\n")
        (folder / "data").mkdir()
        (folder / "partiscope.toml").write_text(
            f'[clusters.prod]\nbootstrap = "{product.bootstrap}"\n'
        )

    def fill(self, line: str) -> str:
        """The line with this reader's addresses, times and moves."""
        moment = datetime.now(UTC) - timedelta(seconds=5)
        line = line.replace("127.0.0.1:9092", self.product.bootstrap)
        line = line.replace("2026-11-21T09:00", moment.strftime("%Y-%m-%dT%H:%M:%SZ"))
        line = re.sub(r"\bmv-[0-9a-f]{8}\b|\bID\b", self.move or "mv-00000000", line)
        if "HASH" in line:
            line = line.replace("HASH", self._noted_hash())
        line = line.replace("partiscope --install", f"HOME={self.folder} partiscope --install")
        return line.replace("PLAN.json", "plan.json")

    def _noted_hash(self) -> str:
        """The newest line of the journal's, which an auditor would have noted."""
        assert run(["topics", "create", f"noted-{self.folder.name}", "--yes"]) == Exit.DONE
        return ChainFile(self.product.data / "journal.chain").read().hash

    def type(self, line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
        """Type it; the status, and all that it said."""
        line = self.fill(line)
        if line.startswith("kafka-console-producer.sh "):
            done = run_tool(
                "org.apache.kafka.tools.ConsoleProducer",
                *shlex.split(line, comments=True)[1:],
                stdin="hello\n",
            )
            return done.returncode, done.stdout + done.stderr
        if line.startswith("kafka-configs.sh "):
            return self._configure(shlex.split(line)[1:])
        if line.startswith("pkill "):  # as its reader means it, but none of another product
            os.kill(self.product.pid_of("broker-102.properties"), signal.SIGKILL)
            return 0, ""
        if " tui" in line:
            return self._look(line)
        needs_shell = re.search(r" [|>] |-completion", line)
        if re.match(r"(\.venv/bin/)?partiscope ", line) and not needs_shell:
            begun = _begin(line, AS_FAR_AS)
            return self._run([*words_of(line), *([AS_FAR_AS[begun]] if begun else [])], capsys)
        typed = Typed(line, self.folder, self.environment)
        typed.says(within_s=5 if line.startswith("tail -f") else 60)
        return typed.end(), typed.said

    def _configure(self, words: list[str]) -> tuple[int, str]:
        """A throttle is removed with what a killed executor has left there."""
        words = [word.replace("kafka1:9092", self.product.bootstrap) for word in words]
        if "--delete-config" not in words:
            done = run_tool("kafka.admin.ConfigCommand", *words)
            return done.returncode, done.stdout + done.stderr
        at = words.index("--delete-config")
        value = "*" if words[at + 1].endswith("replicas") else "1000000"
        left = ",".join(f"{name}={value}" for name in words[at + 1].split(","))
        for way in ([*words[:at], "--add-config", left], words):
            done = run_tool("kafka.admin.ConfigCommand", *way)
            if done.returncode != 0:
                break
        return done.returncode, done.stdout + done.stderr

    def _look(self, line: str) -> tuple[int, str]:
        typed = Typed(line, self.folder, self.environment)
        is_shown = typed.says(r"\d/\d brokers", within_s=30)
        typed.press(b"q")
        typed.says(within_s=20)
        assert is_shown, typed.said
        return typed.end(), typed.said

    def _run(self, words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
        with pytest.MonkeyPatch.context() as terminal:  # its reader sits at one
            terminal.setenv("COLUMNS", "200")
            return self._run_here(words, capsys)

    def _run_here(self, words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
        status = run(words)
        told = "".join(capsys.readouterr())
        if status == Exit.REFUSED and "add --yes" in told:  # its reader answers the question
            status = run([*words, "--yes"])
            told = "".join(capsys.readouterr())
        if found := re.findall(r"\bmv-[0-9a-f]{8}\b", told):
            self.move = found[-1]
        return status, told


def _begin(line: str, beginnings: object) -> str | None:
    """The first words of these that a line begins with."""
    assert isinstance(beginnings, dict)
    bare = line.removeprefix(".venv/bin/")
    return next((words for words in beginnings if bare.startswith(words)), None)


def _typed_here() -> dict[Path, list[str]]:
    """Lines by document; what only reads is typed where it stands first."""
    found: dict[Path, list[str]] = {}
    seen: set[str] = set()
    for document in DOCUMENTS:
        blocks = documented_shell_lines(document)
        for line in [it for lines in blocks if not any(map(is_start, lines)) for it in lines]:
            bare = re.sub(r"^\.venv/bin/|\s+#.*", "", line)
            if not _begin(line, NOT_TYPED) and ("plan" in bare or bare not in seen):
                found.setdefault(document, []).append(line)
            seen.add(bare)
    return found


TYPED: Final = _typed_here()


def _named(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", TYPED, ids=_named)
def test_commands_do_what_the_document_says(
    product: Installation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    document: Path,
) -> None:
    reader = Reader(tmp_path, product)
    monkeypatch.chdir(tmp_path)
    for name, value in reader.environment.items():
        monkeypatch.setenv(name, value)
    if any(" plan " in line for line in TYPED[document]):  # what an earlier document has not moved
        skewed = f"skewed-{document.stem}"
        KafkaEyes(product.bootstrap).create(skewed, {number: [101] for number in range(8)})
        listed = ["partitions", "--filter", f"topic:{skewed}", "--json"]
        wait_until(lambda: _printed(listed, capsys).count('"partition"') == 8, skewed)
    wrong = []
    for line in TYPED[document]:
        _prepare(product, line)
        status, told = reader.type(line, capsys)
        if words := _begin(line, AND_THEN):
            assert run([*words_of(AND_THEN[words])]) == Exit.DONE
        words = _begin(line, STATUSES)
        wanted = {Exit.DONE} if words is None else {STATUSES[words]}
        if judged := _begin(line, VERDICTS):
            wanted.add(VERDICTS[judged])
        if "Traceback" in told or status not in wanted:
            wrong.append(f"{line}\n  status {status}, not {wanted}\n{told[-900:]}")
        if "--preview" in line and told.strip() not in document.read_text():
            wrong.append(f"{line}\n  shows other lines than the document\n{told}")
    assert not wrong, "\n".join(wrong)


def _printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    run(words)
    return capsys.readouterr().out


def _prepare(product: Installation, line: str) -> None:
    """All brokers are up again after one was killed."""
    if " plan " in line:
        eyes = KafkaEyes(product.bootstrap)
        wait_until(lambda: eyes.is_in_sync("orders"), "all brokers are in sync")
        wait_until(lambda: len(eyes.brokers()) == product.brokers, "all brokers are back")


def test_python_of_the_documents_reads_what_it_says(product: Installation) -> None:
    blocks = [
        it
        for file in DOCUMENTS
        for it in re.findall(r"```python\n(.*?)```", file.read_text(), re.S)
    ]
    block, *others = blocks
    assert set(others) == set(history_examples.blocks().values())
    typed = block.replace("data/store", str(product.data / "store"))
    named: dict[str, Any] = {}

    def has_lag() -> bool:
        exec(typed, named)
        return bool(named["lag"].num_rows)

    wait_until(has_lag, "the group that has just begun to read is in the store", timeout_s=60)
    assert named["now"].tables["partitions"].num_rows
    assert {*named["lag"]["topic"].to_pylist()} == {"orders"}
    assert set(named["lag"].column_names) >= {"partition", "at_ms", "lag"}


def _all_lines() -> Iterator[str]:
    for document in DOCUMENTS:
        for lines in documented_shell_lines(document):
            yield from lines


def test_every_exception_is_needed() -> None:
    lines = [*_all_lines()]
    assert len(lines) > 120
    names = (*NOT_TYPED, *STATUSES, *VERDICTS, *AS_FAR_AS, *AND_THEN)
    assert not [it for it in names if not any(_begin(line, {it: 0}) for line in lines)]


def _found(pattern: str) -> list[str]:
    return sorted({it[1] for it in (re.match(pattern, line) for line in _all_lines()) if it})


@pytest.mark.parametrize("line", _found(r"(?:git pull && )?(make [\w-]+)"))
def test_make_knows_its_targets(line: str) -> None:
    words = ("make", "-C", str(ROOT), *line.split()[1:], "--dry-run")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", _found("(ssh .*)"))
def test_ssh_takes_its_words(line: str) -> None:
    first, *words = line.split()
    done = subprocess.run((first, "-G", *words), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_benchmarks_have_the_flags_that_documents_name() -> None:
    """Those of sentences and of tables, by the modules' sources."""
    named = re.findall(
        r"`(?:python -m )?benchmarks\.(\w+)([^`]*)`", "".join(map(Path.read_text, DOCUMENTS))
    )
    assert len(named) > 20
    sources = {name: (ROOT / "benchmarks" / f"{name}.py").read_text() for name, _ in named}
    lacking = [
        f"{name} {flag}"
        for name, words in named
        for flag in re.findall(r"--[\w-]+", words)
        if f'"{flag}"' not in sources[name]
    ]
    assert not lacking
