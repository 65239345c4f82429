"""What the job's command line takes."""

from pathlib import Path

import pytest

import spark_metrics.__main__ as command
from spark_metrics.__main__ import parse_arguments
from tests.support.phrases import lacking

FOLDERS = ("--bootstrap", "b:1", "--store", "s", "--checkpoint", "c")
WHERE = ("--bootstrap", "b:1", "--store", "s3://b/s", "--checkpoint", "s3a://b/c")


@pytest.mark.parametrize(
    "master",
    ["local", "local[*]", "local[2,4]", "spark://a:7077,b:7077", "yarn", "k8s://https://k"],
)
def test_masters_that_spark_knows_are_taken(master: str) -> None:
    assert parse_arguments([*WHERE, "--master", master]).session.master == master


@pytest.mark.parametrize("master", ["foo", "", "local[]", "spark://host", "10.0.0.1:7077"])
def test_any_other_is_refused_with_those_that_are(
    master: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([*WHERE, "--master", master])
    words = capsys.readouterr().err
    assert f"--master {master} is no Spark master" in words
    assert "spark://HOST:PORT" in words


@pytest.mark.parametrize("master", ["spark://a:7077", "yarn"])
def test_executors_are_not_sent_to_a_folder_of_one_machine(
    master: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([*FOLDERS, "--master", master])
    words = capsys.readouterr().err
    assert not lacking(words, "--store s", "folder of this machine", f"executors of {master}")
    assert f"file://{Path.cwd()}/s" in words
    assert not parse_arguments([*FOLDERS, "--master", "local[2]"]).job.has_executors
    assert parse_arguments([*WHERE, "--master", master]).job.has_executors


def test_executors_need_pandas_and_one_machine_does_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda _: None)
    with pytest.raises(SystemExit):
        parse_arguments([*WHERE, "--master", "spark://one:7077"])
    assert "uv sync --inexact --extra executors" in capsys.readouterr().err
    assert not parse_arguments([*FOLDERS, "--master", "local[2]"]).job.has_executors


def test_a_secret_is_no_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([*FOLDERS, "--conf", "spark.authenticate.secret=hunter2"])
    words = capsys.readouterr().err
    assert not lacking(words, "spark.authenticate.secret", "spark-defaults.conf", "0600")
    assert "hunter2" not in words


@pytest.mark.parametrize("flag", ["--store", "--checkpoint"])
def test_a_url_with_a_password_is_refused(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([*WHERE, flag, "s3://KEY:hunter2@bucket/x"])
    words = capsys.readouterr().err
    assert not lacking(words, flag, "AWS_SECRET_ACCESS_KEY")
    assert "hunter2" not in words
