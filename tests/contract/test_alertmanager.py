"""A real Alertmanager takes alerts as it takes those of Prometheus, and resolves them."""

import time
from pathlib import Path

import pytest

from control.alert_delivery.receivers.http import ALERTS_PATH, HttpPlace
from control.alert_delivery.receivers.http import Alertmanager as Receiver
from control.alerts.alert import Alert, AlertStatus
from control.alerts.machine import Tell, Telling
from control.alerts.messages import Page, messages_of
from control.alerts.readings import Match
from tests.support.alert_receivers import WebhookServer
from tests.support.alertmanager import Alertmanager
from tests.support.settle import wait_until

pytestmark = pytest.mark.soak


def test_an_alertmanager_tells_and_resolves_what_it_gets(tmp_path: Path) -> None:
    with WebhookServer() as hook, Alertmanager(tmp_path / "am", hook.url) as real:
        receiver = Receiver(to=HttpPlace(url=real.url + ALERTS_PATH))
        _send(receiver, ends=False)
        _send(receiver, ends=False)  # a second copy opens no second alert
        wait_until(lambda: [it["status"] for it in hook.taken] == ["firing"], "it tells")
        (held,) = real.alerts()
        assert held["labels"] == {
            "alertname": "lag", "cluster": "prod", "subject": 'billing "ä"', "severity": "critical",
            "alert_id": held["labels"]["alert_id"],
        }  # fmt: skip
        assert held["annotations"]["summary"] == "lag 5,000"
        assert held["generatorURL"] == "http://page/groups/billing"
        _send(receiver, ends=True)
        wait_until(
            lambda: [it["status"] for it in hook.taken] == ["firing", "resolved"], "it resolves"
        )
        assert len({it["alerts"][0]["fingerprint"] for it in hook.taken}) == 1


def _send(receiver: Receiver, *, ends: bool) -> None:
    now_ms = time.time_ns() // 1_000_000
    alert = Alert(
        rule="lag",
        cluster="prod",
        match=Match(subject='billing "ä"', words="lag 5,000", path="groups/billing"),
        severity="critical",
        status=AlertStatus.RESOLVED if ends else AlertStatus.FIRING,
        since_ms=now_ms - 60_000,
        fired_ms=now_ms - 30_000,
        resolved_ms=now_ms - 1 if ends else None,
    )
    telling = Telling(receiver="r", kind=Tell.RESOLVES if ends else Tell.FIRES, alert=alert)
    for message in messages_of([telling], at_ms=now_ms, page=Page("http://page")):
        receiver.send(message)
