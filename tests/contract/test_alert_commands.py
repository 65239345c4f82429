"""Commands of alerts that need no process: check, test, backtest, describe, and their statuses."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from partiscope.cli.app import run
from partiscope.cli.shared.exits import Exit
from tests.support.alert_receivers import WebhookServer
from tests.support.phrases import lacking
from tests.support.store_builder import StoreBuilder, SyntheticSizes

Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def hook() -> Iterator[WebhookServer]:
    with WebhookServer() as server:
        yield server


@pytest.fixture
def typed(
    tmp_path: Path,
    hook: WebhookServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Typed:
    """Runs a command over a store of its own with one rule; its status, output and messages."""
    StoreBuilder(tmp_path / "store").write_synthetic(SyntheticSizes(groups=3), history_s=60)
    file = tmp_path / "partiscope.toml"
    file.write_text(
        f'[alerts.receivers.hook]\nkind = "webhook"\nurl = "{hook.url}"\n'
        '[[alerts.rules]]\nname = "any lag"\nwhen = "lags: lag>0"\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(file))
    monkeypatch.setenv("PARTISCOPE_DATA", str(tmp_path / "data"))

    def type_(*words: str) -> tuple[int, str, str]:
        status = run(["alerts", *words])
        told = capsys.readouterr()
        return status, told.out, told.err

    return type_


def test_check_tells_what_each_rule_matches_now_and_sends_nothing(
    typed: Typed, hook: WebhookServer
) -> None:
    status, out, _ = typed("check", "--store", "store", "--json")
    (rule,) = json.loads(out)["rules"]
    assert (status, rule["known"], rule["matching"] > 0) == (Exit.DONE, True, True)
    assert rule["rows"][0]["words"].startswith("lag ")
    assert not hook.taken


def test_without_a_rule_it_is_said_where_one_is_written(typed: Typed) -> None:
    Path("partiscope.toml").write_text("")
    checked, tried = typed("check", "--store", "store"), typed("backtest", "--store", "store")
    assert (checked[0], tried[0]) == (Exit.DONE, Exit.WRONG_USE)
    assert "[[alerts.rules]]" in checked[2]
    assert not lacking(tried[2], "no alert rule", "--when")


def test_a_test_sends_an_alert_and_its_end(typed: Typed, hook: WebhookServer) -> None:
    status, out, _ = typed("test", "hook")
    assert (status, [it["status"] for it in hook.taken]) == (Exit.DONE, ["firing", "resolved"])
    assert "s3cret" not in out


def test_a_receiver_that_refuses_a_test_says_why(typed: Typed, hook: WebhookServer) -> None:
    hook.refuses_with = 401
    status, _, said = typed("test", "hook")
    assert (status, "401" in said, "s3cret" in said) == (Exit.UNREACHABLE, True, False)


def test_backtest_tries_the_rules_of_the_file_or_one_that_is_typed(typed: Typed) -> None:
    flags = ("--store", "store", "--since", "1m", "--step", "10s", "--json")
    status, out, _ = typed("backtest", *flags)
    (rule,) = json.loads(out)["rules"]
    assert (status, rule["rule"], rule["rings"] > 0) == (Exit.DONE, "any lag", True)
    _, out, _ = typed("backtest", "--when", "lags: lag>1G", *flags)
    assert json.loads(out)["rules"][0]["rings"] == 0


def test_a_backtest_on_a_terminal_tells_rules_and_times(typed: Typed) -> None:
    status, out, _ = typed("backtest", "--store", "store", "--since", "1m", "--step", "20s")
    assert status == Exit.DONE
    assert "any lag: lags: lag>0" in out
    assert "group-2 topic-2-5" in out


@pytest.mark.parametrize(
    "words",
    [
        ("test", "pager"),
        ("backtest", "--store", "store", "--rule", "other"),
        ("backtest", "--store", "store", "--when", "groups: nix>1"),
        ("backtest", "--store", "store", "--step", "often"),
        ("backtest", "--store", "store", "--since", "2020-01-01", "--until", "2020-01-02"),
        ("silence", "--for", "1h"),
        ("silence", "--rule", "lag", "--for", "500d"),
        ("silence", "--rule", "lag", "--from", "2020-01-01"),
        ("list",),
    ],
)
def test_what_cannot_be_done_is_wrong_use_and_says_what_would_do(
    typed: Typed, words: tuple[str, ...]
) -> None:
    status, _, said = typed(*words)
    assert status == Exit.WRONG_USE
    assert said.startswith("partiscope: ")
