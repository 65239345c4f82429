"""The table of alerts tells who was told, when next, and who silences until when."""

from dataclasses import replace

from control.alerts.alert import Alert, AlertStatus, Delivery
from control.alerts.readings import Match
from control.alerts.rules import RuleReport
from control.alerts.silences import WINDOW, Matcher, Silence
from control.views.alert_tables import NO_ALERTS, AlertsTold
from tests.unit.control.clusters import NOW_MS

HOUR_MS = 3_600_000
FIRING = Alert(
    rule="lag",
    cluster="prod",
    match=Match(subject="billing", path="groups/billing"),
    severity="warning",
    status=AlertStatus.FIRING,
    since_ms=NOW_MS - 90_000,
    fired_ms=NOW_MS - 60_000,
    deliveries={"slack": Delivery(fired_ms=NOW_MS - 50_000, last_ms=NOW_MS - 50_000)},
)
PENDING = replace(
    FIRING, rule="disk", match=Match(subject="broker 101"), status=AlertStatus.PENDING,
    fired_ms=None, deliveries={},
)  # fmt: skip
RULES = {"lag": RuleReport(receivers=("slack", "mail"), repeat_ms=HOUR_MS)}
ANNAS = Silence(
    id="si-1", matcher=Matcher(rule="lag"), from_ms=NOW_MS - 5, until_ms=NOW_MS + HOUR_MS,
    who="anna", why="resize",
)  # fmt: skip
LONGER = replace(ANNAS, id="Sunday", until_ms=NOW_MS + 2 * HOUR_MS, who=WINDOW)
TOLD = AlertsTold(alerts=(PENDING, FIRING), rules=RULES, is_delivered=True)


def test_it_tells_who_has_taken_it_and_who_has_not_and_when_it_is_told_again() -> None:
    firing, pending = TOLD.alert_rows(NOW_MS)
    assert (firing.status.text, pending.status.text) == ("firing", "pending")
    assert firing.told.text.startswith("slack ")
    assert firing.told.text.endswith("; not yet: mail")
    assert firing.repeats.value == NOW_MS - 50_000 + HOUR_MS
    assert (pending.told.value, pending.repeats.value, pending.silenced.value) == (None, None, None)
    assert (firing.path, TOLD.given_of(firing)["subject"]) == ("groups/billing", "billing")


def test_a_silence_tells_until_when_and_by_whom_and_nothing_is_told_again() -> None:
    told = replace(TOLD, silences=(ANNAS,), windows=(LONGER,))
    firing, pending = told.alert_rows(NOW_MS)
    assert firing.status.text == "silenced (firing)"
    assert firing.silenced.value == LONGER.until_ms, "the one that lasts longest"
    assert firing.silenced_by.text == WINDOW
    assert (firing.repeats.value, "not yet" in firing.told.text) == (None, False)
    assert pending.silenced.value is None
    alone = replace(told, windows=()).alert_rows(NOW_MS)[0]
    assert alone.silenced_by.text == "anna"
    assert TOLD.alert_rows(ANNAS.until_ms)[0].status.text == "firing"


def test_silences_are_listed_until_they_end_and_a_window_cannot_be_ended_here() -> None:
    told = replace(TOLD, silences=(ANNAS,), windows=(LONGER,))
    first, second = told.silence_rows(NOW_MS)
    assert (first.id.text, second.id.text) == ("si-1", "Sunday")
    assert (told.given_of(first), told.given_of(second)) == ({"silence": "si-1"}, {})
    assert [it.id.text for it in told.silence_rows(ANNAS.until_ms)] == ["Sunday"]
    assert NO_ALERTS.alert_rows(NOW_MS) == NO_ALERTS.silence_rows(NOW_MS) == ()
