"""The section ``[prometheus]``: one place for its defaults, bounds on what it lets through."""

from pathlib import Path

import pytest

from control.exposition.limits import SERIES_MAX, USUAL
from partiscope.settings import PrometheusSettings, SettingsError, load_settings


def test_limits_are_the_usual_ones_until_somebody_sets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PrometheusSettings().limits == USUAL

    file = tmp_path / "partiscope.toml"
    file.write_text('[prometheus]\ntopics = ["orders-*"]\npartitions_max = 7\n')
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(file))
    limits = load_settings().prometheus.limits
    assert (list(limits.topics), limits.partitions_max) == (["orders-*"], 7)


@pytest.mark.parametrize("value", ["-1", str(SERIES_MAX + 1), "many"])
def test_a_limit_out_of_bounds_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PARTISCOPE_PROMETHEUS__GROUPS_MAX", value)

    with pytest.raises(SettingsError, match="groups_max"):
        load_settings()
