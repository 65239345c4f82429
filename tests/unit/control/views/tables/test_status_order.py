"""Statuses stand in one order wherever they are sorted or listed: the worst first."""

import re
from collections.abc import Mapping
from itertools import pairwise

import pytest

from control.model.status import (
    BROKER_SEVERITIES,
    GROUP_SEVERITIES,
    PARTITION_SEVERITIES,
    Severity,
)
from control.move.events import Outcome
from control.move.state import Phase
from control.views import alert_tables
from control.views.tables import brokers, moves
from control.views.tables.rows import Tone
from tests.support.node_cluster import ROOT

WORST_FIRST = [Tone.CRITICAL, Tone.WARNING, Tone.NOTICE, Tone.MUTED, Tone.FINE, Tone.PLAIN]


@pytest.mark.parametrize(
    "severities", [BROKER_SEVERITIES, PARTITION_SEVERITIES, GROUP_SEVERITIES], ids=len
)
def test_severities_never_rise(severities: Mapping[str, Severity]) -> None:
    assert all(first >= second for first, second in pairwise(severities.values()))


@pytest.mark.parametrize(
    "tones", [brokers._STATES, moves._TONES, alert_tables._STATUS_TONES], ids=len
)
def test_tones_never_get_worse(tones: Mapping[str, Tone]) -> None:
    places = [WORST_FIRST.index(tone) for tone in tones.values()]
    assert places == sorted(places)


def test_each_status_of_a_move_has_its_place() -> None:
    words = {*map(str, Phase), *map(str, Outcome)} - {str(Phase.FINISHED)}
    assert words | {moves.WAITS, moves.YIELDS} == moves._TONES.keys()


def test_the_document_lists_verdicts_in_their_order() -> None:
    text = (ROOT / "docs/operate/lag.md").read_text()
    listed = re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE)
    assert listed == list(GROUP_SEVERITIES)
