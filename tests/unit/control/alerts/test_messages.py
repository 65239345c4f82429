"""Messages: grouped, whole, with ids that stay, and links."""

from control.alerts.alert import Alert, AlertStatus, Delivery, alert_id
from control.alerts.machine import Tell, Telling
from control.alerts.messages import ALERTS_PER_MESSAGE_MAX, Page, messages_of
from control.alerts.readings import Match


def _telling(subject: str, kind: Tell = Tell.FIRES, *, rule: str = "lag") -> Telling:
    ends = kind is Tell.RESOLVES
    alert = Alert(
        rule=rule,
        cluster="prod",
        match=Match(subject=subject, words="lag 5", path=f"groups/{subject}", step="plan?goal=x"),
        severity="critical",
        status=AlertStatus.RESOLVED if ends else AlertStatus.FIRING,
        since_ms=1_000,
        fired_ms=2_000,
        resolved_ms=9_000 if ends else None,
        deliveries={} if kind is Tell.FIRES else {"r": Delivery(fired_ms=1, last_ms=1)},
    )
    return Telling(receiver="r", kind=kind, alert=alert)


def test_alerts_of_one_rule_are_told_together_and_none_is_left_out() -> None:
    tellings = [_telling(f"g{number}") for number in range(ALERTS_PER_MESSAGE_MAX + 1)]
    several = [*tellings, _telling("g0", Tell.RESOLVES), _telling("g0", rule="other")]
    found = list(messages_of(several, at_ms=5))
    assert [(it.rule, it.status, len(it.tellings)) for it in found] == [
        ("lag", "firing", ALERTS_PER_MESSAGE_MAX),
        ("lag", "firing", 1),
        ("lag", "resolved", 1),
        ("other", "firing", 1),
    ]
    assert len({it.id for it in found}) == 4


def test_the_same_tellings_make_the_same_message_later() -> None:
    first, second = (next(messages_of([_telling("g")], at_ms=at)) for at in (5, 50_000))
    assert first.id == second.id
    repeat = next(messages_of([_telling("g", Tell.REPEATS)], at_ms=5))
    assert repeat.id != first.id
    assert repeat.is_repeat


def test_a_message_links_to_the_row_and_to_what_mends_it() -> None:
    page = Page("http://page", cluster="prod/1")
    (message,) = messages_of([_telling("g")], at_ms=5, page=page)
    (alert,) = message.document()["alerts"]
    assert alert["link"] == "http://page/groups/g?cluster=prod%2F1"
    assert alert["step_link"] == "http://page/plan?goal=x&cluster=prod%2F1"
    assert alert["link"] in message.text


def test_an_end_tells_when_it_began_and_ended() -> None:
    (message,) = messages_of([_telling("g", Tell.RESOLVES)], at_ms=5)
    assert message.title == "RESOLVED: lag, g (prod)"
    assert "1970-01-01 00:00:01 UTC" in message.text
    assert "1970-01-01 00:00:09 UTC" in message.text


def test_no_two_alerts_share_an_id_by_names_that_run_together() -> None:
    assert alert_id("ab", "c", "d") != alert_id("a", "bc", "d")
