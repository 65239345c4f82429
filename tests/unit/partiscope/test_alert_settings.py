"""The section ``[alerts]``: what it takes, what it refuses, and which secrets it keeps."""

from datetime import time
from pathlib import Path

import pytest

from partiscope.alert_receivers import alert_settings, receivers_of
from partiscope.settings import Settings, SettingsError, load_settings

RECEIVER = '[alerts.receivers.hook]\nkind = "webhook"\nurl = "https://hooks.example/s3cret"\n'
RULE = '[[alerts.rules]]\nname = "lag"\nwhen = "groups: lag>1"\n'


def _load(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    file = folder / "partiscope.toml"
    file.write_text(text)
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(file))
    return load_settings()


def test_a_rule_takes_from_its_section_what_it_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'[alerts]\nrepeat = "never"\nresolve_after = "3m"\n{RECEIVER}{RULE}'
    settings = _load(text, tmp_path, monkeypatch).alerts
    (rule,) = alert_settings(settings, ["a", "b"]).rules
    assert (rule.receivers, rule.repeat_ms, rule.resolve_after_ms) == (("hook",), None, 180_000)


def test_a_window_is_read_with_its_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        '[[alerts.maintenance]]\nname = "n"\ndays = ["sun"]\nfrom = 02:00:00\nuntil = 06:00:00\n'
        'timezone = "Europe/Berlin"\ncluster = "prod"\n'
    )
    (window,) = alert_settings(_load(text, tmp_path, monkeypatch).alerts, [""]).windows
    assert (window.begin, window.end, str(window.zone)) == (time(2), time(6), "Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{RULE}{RULE}", "two rules are called 'lag'"),
        (RULE.replace("lag>1", ""), "no filter"),
        (f'{RECEIVER}{RULE}receivers = ["hok"]\n', "names the receiver 'hok'"),
        ('[alerts.receivers.m]\nkind = "email"\nhost = "h"\n', "needs sender, to"),
        ('[alerts.receivers.c]\nkind = "command"\ncommand = ["x"]\nurl = "http://x"\n',
         "takes no url"),
        (f'{RECEIVER}token = "a"\ntoken_file = "/dev/null"\n', "token"),
        (RECEIVER.replace("https://", "ftp://"), "not an address"),
        (f'{RECEIVER}timeout = "2m"\n', "at most 55s"),
        (f'{RULE}repeat = "often"\n', "'often' is not a time"),
        ('[[alerts.maintenance]]\nname = "n"\nfrom = 02:00:00\nuntil = 06:00:00\n'
         'timezone = "Mars/Base"\n', "no such zone"),
    ],
)  # fmt: skip
def test_what_cannot_be_followed_is_refused_without_its_secrets(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError, match=why) as told:
        _load(text, tmp_path, monkeypatch)
    assert "s3cret" not in str(told.value)


def test_secrets_come_from_files_and_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "url"
    file.write_text("https://hooks.example/s3cret\nsecond line\n")
    text = f'[alerts.receivers.hook]\nkind = "webhook"\nurl_file = "{file}"\n'
    settings = _load(text, tmp_path, monkeypatch)
    receiver = receivers_of(settings.alerts)["hook"]
    assert receiver.place == "https://hooks.example"
    assert "s3cret" not in f"{settings!r}{receiver!r}"
