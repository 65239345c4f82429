"""The command line's edges: statuses, messages, no traceback."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from partiscope.cli.app import run
from tests.support.patience import WAIT_S


def test_version_and_help_are_fine(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("partiscope ")
    assert run(["--help"]) == 0


@pytest.mark.parametrize("arguments", [["nonsense"], ["up", "--brokers", "0"], ["broker"]])
def test_wrong_use_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert "Usage" in capsys.readouterr().err


def test_without_a_terminal_the_screen_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tui"]) == 2
    assert "needs a terminal" in capsys.readouterr().err


def test_a_taken_port_is_a_message_not_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = str(holder.getsockname()[1])
        arguments = ["cluster", "--brokers", "1", "--port", port, "--data", str(tmp_path)]
        assert run(arguments) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"partiscope: cannot listen on 127.0.0.1:{port}")
    assert "Traceback" not in said


def test_a_bad_settings_file_names_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.toml").write_text("[cluster]\nbrokers = 'many'\n")
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(tmp_path / "bad.toml"))
    assert run(["cluster", "--data", str(tmp_path)]) == 2
    assert "cluster.brokers" in capsys.readouterr().err


def test_an_unknown_setting_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.toml").write_text("[cluster]\nbroker = 5\n")
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(tmp_path / "bad.toml"))
    assert run(["cluster", "--data", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "unknown setting cluster.broker; did you mean cluster.brokers?" in told


@pytest.mark.parametrize(
    ("setting", "flags", "words"),
    [
        ('racks = ""', [], "cluster.racks"),
        ("", ["--brokers", "70"], "brokers"),
        ("", ["--port", "65535"], "there is no port 65536"),
    ],
)
def test_what_is_out_of_bounds_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    setting: str,
    flags: list[str],
    words: str,
) -> None:
    (tmp_path / "bad.toml").write_text(f"[cluster]\n{setting}\n")
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(tmp_path / "bad.toml"))
    assert run(["cluster", "--data", str(tmp_path), *flags]) in (1, 2)
    assert words in capsys.readouterr().err


def test_flags_overrule_environment_overrules_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from partiscope.cli.shared.options import cluster_with, settings_with

    (tmp_path / "p.toml").write_text("[cluster]\nport = 1111\nbrokers = 5\nfirst_id = 7\n")
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(tmp_path / "p.toml"))
    monkeypatch.setenv("PARTISCOPE_CLUSTER__PORT", "2222")
    settings = settings_with(data=tmp_path)
    cluster = cluster_with(settings.cluster, brokers=4, port=None)
    assert (cluster.first_id, cluster.port, cluster.brokers) == (7, 2222, 4)
    assert settings.data == tmp_path


def test_a_start_view_that_is_none_is_said_before_anything_starts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["dashboard", "nowhere/at/all"]) == 2
    assert "there is no view 'nowhere/at/all'" in capsys.readouterr().err


def _typed(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """As from a shell."""
    typed = command.replace("partiscope", f"{shlex.quote(sys.executable)} -m partiscope")
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", typed],
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("partiscope plan --topology {file} >/dev/full", 1, "No space left on device"),
        ("partiscope plan --topology {file} --json >/dev/full", 1, "No space left on device"),
        ("partiscope plan --topology {file} >&-", 2, "standard output is closed"),
        ("partiscope plan --topology {file} 1</dev/null", 2, "standard output is closed"),
        ("partiscope plan --topology {file} --out {file}.out >&-; ls {file}.out", 2, "No such"),
        ("partiscope tail orders >&-", 2, "standard output is closed"),
        ("partiscope produce orders --key k --value v >&-", 2, "nothing was done"),
        ("partiscope groups >&-", 2, "standard output is closed"),
        ("partiscope tui >&-", 2, "standard output is closed"),
        ("partiscope tui <&-", 2, "needs a terminal"),
        ("partiscope tail orders >&- 2>&-", 2, ""),
        ("partiscope broker --config {file}.none >&-", 2, ".none"),
        ("partiscope plan --topology {file} --json | head -c 1", 0, "{"),
        ("partiscope --help | true", 0, ""),
        ("partiscope plan --topology /nowhere 2>&1 | true", 2, ""),
    ],
)
def test_output_that_cannot_be_written_is_no_traceback(
    tmp_path: Path, command: str, status: int, said: str
) -> None:
    done = _typed(command.format(file=shlex.quote(str(_topology(tmp_path)))))
    words = (done.stdout + done.stderr).decode()
    assert (done.returncode, said in words, "Traceback" in words) == (status, True, False), words


def test_one_log_of_both_streams_has_them_in_the_order_of_writing() -> None:
    script = """
import sys
from partiscope.cli.shared.streams import settle_streams
settle_streams([])
for word in ("plan", "done"):
    sys.stdout.write(f"{word} on stdout\\n")
    sys.stderr.write(f"{word} on stderr\\n")
"""
    told = subprocess.run(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
        text=True,
    )
    order = [f"{word} on {stream}" for word in ("plan", "done") for stream in ("stdout", "stderr")]
    assert told.stdout.splitlines() == order


def test_json_is_utf_8_and_text_is_what_the_locale_can_write(tmp_path: Path) -> None:
    file = shlex.quote(str(_topology(tmp_path)))
    told = _typed(f"partiscope plan --topology {file} --json", PYTHONIOENCODING="latin-1")
    assert "topic-é" in json.dumps(json.loads(told.stdout), ensure_ascii=False)
    text = _typed(f"partiscope plan --topology {file}", PYTHONIOENCODING="ascii")
    assert (text.returncode, text.stdout.isascii()) == (0, True), text.stderr


def _topology(folder: Path) -> Path:
    brokers = [{"id": 1}, {"id": 2}]
    row = {"topic": "topic-é", "replicas": [1], "size": 9}
    partitions = [{**row, "partition": number} for number in range(200)]
    file = folder / "topology.json"
    file.write_text(json.dumps({"brokers": brokers, "partitions": partitions}))
    return file


INTERRUPTED_WHILE_LOADING = """
import os, signal, sys
from partiscope.cli.app import main

class Interrupting:
    def find_spec(self, name, *more):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
main()
"""


def test_ctrl_c_while_it_is_still_loaded_ends_a_command_without_a_word() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_LOADING],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize(
    ("settings", "variable", "told"),
    [
        ("dta = 'x'", "", "setting dta; did you mean data?"),
        ("[clusters.p]\nbootstrap = 'a:1'\nprodction = true", "",
         "unknown setting clusters.p.prodction; did you mean clusters.p.production?"),
        ("[clusters.p.connection]\nuser_name = 'x'", "", "mean clusters.p.connection.username?"),
        ("[cluster]\nbrokers = 'many'", "", "cluster.brokers = 'many': "),
        ("bus = 'a:99999'", "", "'a:99999' has no port from 1 to 65535"),
        ("a b", "", "is not TOML"),
        ("", "PARTISCOPE_DTA", "PARTISCOPE_DTA: unknown setting dta; did you mean"),
        ("", "PARTISCOPE_CLUSTER__PROT", "setting cluster.prot; did you mean cluster.port?"),
        ("", "PARTISCOPE_CLUSTERS", "PARTISCOPE_SECTION__NAME"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_told_with_the_right_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    settings: str,
    variable: str,
    told: str,
) -> None:
    (tmp_path / "s.toml").write_text(settings)
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(tmp_path / "s.toml"))
    if variable:
        monkeypatch.setenv(variable, "x")
    assert run(["topics", "list"]) == 2
    assert told in capsys.readouterr().err


def test_a_damaged_record_of_what_runs_is_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "installation.json").write_bytes(b"\xff")
    assert run(["topics", "list", "--data", str(tmp_path)]) == 2
    assert "is damaged" in capsys.readouterr().err


LOADED_BY = """
import sys
from partiscope.cli.app import main
sys.argv = ["partiscope", *sys.argv[1:]]
try:
    main()
finally:
    heavy = {"pyspark", "aiokafka", "kio", "numpy", "pyarrow", "duckdb", "textual", "dash",
             "plotly", "rich", "pydantic", "asyncio", "broker.protocol", "control", "spark_metrics"}
    sys.stderr.write(repr(sorted(heavy & sys.modules.keys())))
"""


@pytest.mark.parametrize("words", [("--help",), ("--version",), ()])
def test_help_loads_no_command(words: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED_BY, *words], capture_output=True, text=True)
    assert done.stderr.endswith("[]"), done.stderr


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("to",), "topics"),
        (("topics", "cr"), "create"),
        (("topics", "create", "--p"), "--partitions"),
    ],
)
def test_completion_loads_no_command(words: tuple[str, ...], found: str) -> None:
    variables = {"_PARTISCOPE_COMPLETE": "complete_bash", "COMP_CWORD": str(len(words)),
                 "COMP_WORDS": "\n".join(("partiscope", *words))}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", LOADED_BY], capture_output=True, text=True,
        env={**os.environ, **variables},
    )  # fmt: skip
    assert found in done.stdout.split()
    assert done.stderr == "[]"


def test_every_command_says_in_help_what_the_list_of_commands_says() -> None:
    from partiscope.cli.commands import COMMANDS, loaded

    for command in COMMANDS:
        assert len(f"  {command.name:<10}  {command.summary}") <= 80
        assert loaded(command).help, command.name


def test_no_command_waits_for_pandas(tmp_path: Path) -> None:
    """PyArrow would load it with the first array, wherever it is installed, as it is here."""
    code = (
        "import sys; sys.argv = ['partiscope', '--version']; from partiscope.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: import pyarrow; pyarrow.array([1]); print('pandas' in sys.modules)"
    )
    command = (sys.executable, "-c", code)
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert find_spec("pandas") is not None
    assert done.stdout.splitlines()[-1] == "False"
