"""What the job's command line takes."""

import pytest

from spark_metrics.__main__ import parse_arguments

WHERE = ("--bootstrap", "b:1", "--store", "s", "--checkpoint", "c")


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
