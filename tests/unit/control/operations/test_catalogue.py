"""The catalogue of operations and their forms."""

from datetime import datetime
from inspect import signature

import pytest

from control.model.ids import partition_numbers
from control.move.window import window_check
from control.move.yields import NEVER_YIELDS, YieldMode, YieldRules
from control.operations import checks
from control.operations.catalogue import FORMS, OPERATIONS, RIGHTS, form_named
from control.operations.catalogue.alerts.end_silence import EndSilence
from control.operations.catalogue.alerts.silence_alerts import SilenceAlerts
from control.operations.catalogue.forms import Confirmation, OperationForm
from control.operations.catalogue.groups.reset_offsets import ResetOffsets
from control.operations.catalogue.moves.reassign import (
    REASSIGN,
    Reassign,
    move_window,
    yield_rules,
)
from control.operations.catalogue.operation import Operation
from control.operations.catalogue.topics.create_topic import CreateTopic
from control.operations.catalogue.topics.produce import PRODUCE, produce_job
from control.operations.checks import config_pairs, pairs, spread_seconds
from control.operations.errors import InvalidInputError
from partiscope.cli.reassignments.reassign import reassign
from planner.by_hand import NOTHING
from planner.waves import USUAL_WAVES
from tests.support.cases import case
from tests.support.phrases import lacking


def test_names_and_keys_are_unique() -> None:
    assert len({form.name for form in FORMS}) == len(FORMS)
    assert len({form.key for form in FORMS}) == len(FORMS)
    assert form_named("produce") is PRODUCE
    with pytest.raises(KeyError):
        form_named("nothing")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_each_form_is_whole(form: OperationForm) -> None:
    names = [field.name for field in form.fields]
    assert len(set(names)) == len(names)
    for field in form.fields:
        assert field.default == "" or field.error_in(field.default) is None
        assert not field.choices or field.default in ("", *field.choices)


VALUES = {
    "topic": "orders",
    "broker": "101",
    "partitions": "5",
    "configs": "retention.ms=1000,cleanup.policy=compact,delete",
    "group": "billing",
    "to": "latest",
    "before": "10",
    "silence": "si-1",
    "reason": "a test",
}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda it: it.FORM.name)
def test_each_operation_is_whole(operation: type[Operation]) -> None:
    asked = operation.of(operation.FORM.parse(VALUES))
    assert asked.reason == "a test"
    assert RIGHTS[operation.FORM.name] == operation.RIGHTS
    assert operation.RIGHTS or operation in (SilenceAlerts, EndSilence), "it changes the bus alone"
    assert asked.what.islower()
    is_typed = operation.FORM.confirmation is Confirmation.TYPED
    assert bool(asked.thing) == is_typed, "what destroys wants a name"


@pytest.mark.parametrize("text", ["", "23:59", "2099-01-01T00:00", "now"])
def test_a_silence_begins_now_or_later(text: str) -> None:
    assert SilenceAlerts.FORM.errors({"begins": text}) == {}
    asked = SilenceAlerts.of(SilenceAlerts.FORM.parse({"begins": text}))
    assert (asked.from_ms is None) == (not text)
    assert "begins" in SilenceAlerts.FORM.errors({"begins": "2020-01-01T00:00"})
    assert "begins" in SilenceAlerts.FORM.errors({"begins": "soon"})


def test_a_comma_inside_a_config_value_stays_in_it() -> None:
    assert pairs(VALUES["configs"]) == {"retention.ms": "1000", "cleanup.policy": "compact,delete"}
    assert pairs("a=1,2,3\nb=,\nc=x") == {"a": "1,2,3", "b": "", "c": "x"}
    assert "'delete'" in (config_pairs("delete,a=1") or "")
    assert "'nothing'" in (config_pairs("a=1\nnothing") or "")
    assert not lacking(config_pairs("a=1, b=2, a=3") or "", "'a=3'", "'1'")


def test_all_wrong_fields_are_named_at_once() -> None:
    errors = CreateTopic.FORM.errors(
        {"topic": "a b", "partitions": "x", "replication_factor": "0", "configs": "retention"}
    )
    assert set(errors) == {"topic", "partitions", "replication_factor", "configs"}
    with pytest.raises(InvalidInputError) as error:
        CreateTopic.FORM.parse({"topic": ".."})
    assert error.value.fields.keys() == {"topic"}


def test_values_come_back_complete() -> None:
    values = CreateTopic.FORM.parse({"topic": " orders "})
    assert values == {
        "topic": "orders",
        "partitions": "",
        "replication_factor": "",
        "like": "",
        "template": "none",
        "configs": "",
        "placing": "evenly",
        "reason": "",
    }
    assert REASSIGN.defaults({"topics": "orders"})["topics"] == "orders"


@pytest.mark.parametrize("text", ["auto", "none", "1024"])
def test_throttles_that_are_fine(text: str) -> None:
    assert REASSIGN.errors({"throttle": text}) == {}


@pytest.mark.parametrize("text", ["fast", "1000", "-5", "1.5"])
def test_throttles_that_are_not(text: str) -> None:
    assert set(REASSIGN.errors({"throttle": text})) == {"throttle"}


@pytest.mark.parametrize(
    "text", ["earliest", "latest", "12", "+3", "-3", "@1700000000000", "10m", "2026-11-21T09:00"]
)
def test_reset_targets(text: str) -> None:
    assert ResetOffsets.FORM.errors({"group": "g", "topic": "t", "to": text}) == {}
    assert "to" in ResetOffsets.FORM.errors({"group": "g", "topic": "t", "to": f"{text}?"})


def test_a_produce_job_from_a_form() -> None:
    values = PRODUCE.parse({"topic": "t", "key": "zipf:10", "rate": "5", "headers": "a=b, c=d=e"})
    job = produce_job(values)
    assert (job.keys, job.rate, job.partition) == ("zipf:10", 5.0, None)
    assert job.headers == (("a", b"b"), ("c", b"d=e"))
    tombstone = produce_job(PRODUCE.parse({"topic": "t", "key": "k", "is_tombstone": "true"}))
    assert tombstone.value is None


def test_what_is_typed_into_the_produce_form_is_sent_as_it_is() -> None:
    typed = {"topic": " t ", "key": " k ", "value": "\tv \n", "headers": "a=1, b=2, a=3"}
    job = produce_job(PRODUCE.parse(typed))
    assert (job.topic, job.keys, job.value) == ("t", " k ", "\tv \n")
    assert job.headers == (("a", b"1"), ("b", b"2"), ("a", b"3"))
    for name, text in (("headers", "a=\ud800"), ("headers", "\ud800=1"), ("headers", "=1"),
                       ("headers", "a"), ("rate", "inf"), ("rate", "nan"), ("rate", "1e400"),
                       ("count", "9" * 30), ("count", "٣"), ("partition", "-1"),
                       ("partition", "1.0")):  # fmt: skip
        with case(name, text):
            assert set(PRODUCE.errors({"topic": "t", name: text})) == {name}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("none", 0.0), ("5m", 300.0), ("90s", 90.0), ("1.5 h", 5400.0), ("1d", 86_400.0)],
)
def test_a_spread_is_none_or_a_time(text: str, seconds: float) -> None:
    assert spread_seconds(text) == seconds
    assert REASSIGN.errors({"spread": text}) == {}


@pytest.mark.parametrize("text", ["300", "fast", "-5s", "2d", "auto"])
def test_a_spread_without_a_unit_or_beyond_a_day_is_refused(text: str) -> None:
    assert set(REASSIGN.errors({"spread": text})) == {"spread"}
    assert not lacking(REASSIGN.errors({"spread": text})["spread"], "none", "up to a day", "5m")


def test_usual_yields_are_the_same_in_forms_and_on_the_command_line() -> None:
    typed = signature(reassign).parameters
    names = ("yield_to_consumers", "yield_after", "yield_at_most")
    for usual in (lambda name: REASSIGN.field(name).default, lambda name: typed[name].default):
        assert yield_rules({name: usual(name) for name in names}) == NEVER_YIELDS


def test_usual_moves_begin_at_any_time() -> None:
    typed = signature(reassign).parameters
    for usual in (lambda name: REASSIGN.field(name).default, lambda name: typed[name].default):
        assert move_window({name: usual(name) for name in ("start", "until")}) is None


@pytest.mark.parametrize(
    ("start", "until", "wrong"),
    [("01:00", "", "until"), ("", "05:00", "start"), ("01:00", "1:00", "until")],
)
def test_half_a_window_and_one_of_no_length_are_refused(start: str, until: str, wrong: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        Reassign.of_plan(NOTHING, {"start": start, "until": until})
    assert set(refused.value.fields) == {wrong}


@pytest.mark.parametrize("text", ["24:00", "1", "01:60", "noon", "-1:00", "01:00:00"])
def test_a_time_of_the_day_is_hours_and_minutes(text: str) -> None:
    assert set(REASSIGN.errors({"start": text})) == {"start"}


def test_a_zone_without_a_name_is_told_with_what_sets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    with pytest.raises(InvalidInputError, match="set TZ, such as Europe/Berlin"):
        Reassign.of_plan(NOTHING, {"start": "01:00", "until": "05:00"})


def test_the_window_stands_in_the_form_with_the_zone_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    window = Reassign.of_plan(NOTHING, {"start": "22:00", "until": "4:30"}).window
    assert window is not None
    assert window.words == "22:00 to 04:30 (Asia/Kolkata)"
    now_ms = datetime(2026, 12, 1, 20, tzinfo=window.zone).timestamp() * 1000
    told = window_check(window, 8 * 3600.0, now_ms=now_ms).reason
    assert not lacking(told, window.words, "first in 2 h", "done in 1 d 3 h", "04:30 arrive")


def test_a_throttle_that_is_not_there_cannot_be_lowered() -> None:
    slow = YieldRules(mode=YieldMode.SLOW)
    with pytest.raises(InvalidInputError, match=r"slow lowers the throttle\b.* none"):
        Reassign(throttle="none", yields=slow).check()
    Reassign(throttle="50MiB", yields=slow).check()


@pytest.mark.parametrize("text", ["0s", "none", "30", "2d", "soon"])
def test_a_yield_lasts_a_second_at_least(text: str) -> None:
    assert set(REASSIGN.errors({"yield_after": text})) == {"yield_after"}


def test_the_usual_spread_is_the_same_in_forms_and_on_the_command_line() -> None:
    typed = signature(reassign).parameters["spread"].default
    for usual in (REASSIGN.field("spread").default, typed):
        assert spread_seconds(usual) == USUAL_WAVES.spread_s


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("", ()), ("7", (7,)), ("3, 0", (0, 3)), ("0,3-5", (0, 3, 4, 5)), ("4-4,4", (4,))],
)
def test_partitions_are_named_one_by_one_and_by_ranges(text: str, numbers: tuple[int, ...]) -> None:
    assert checks.partitions(text) is None
    assert partition_numbers(text) == numbers


@pytest.mark.parametrize("text", ["5-3", "-1", "a", "1-", "1-2-3", "0-99999999", "1;2"])
def test_what_names_no_partitions_is_told(text: str) -> None:
    assert checks.partitions(text) is not None
