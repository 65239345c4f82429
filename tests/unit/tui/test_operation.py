"""Operations that are no view: a key, a form filled in with what is here, a clear error."""

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input, Static

from control.operations.catalogue import FORMS, OPERATIONS
from tests.snapshots.canned import CannedSession
from tests.support.phrases import lacking
from tests.support.settle import settle
from tui.app import PartiscopeApp
from tui.screens.base import VIEWS_OF_FORMS, ViewScreen
from tui.screens.dialogs.confirm import ConfirmScreen
from tui.screens.dialogs.operation import OperationScreen
from tui.terminal_session import Services
from tui.widgets.form import FormPanel
from tui.widgets.name_input import NameInput


async def _open(app: PartiscopeApp, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    await settle(pilot, lambda: isinstance(app.screen, OperationScreen), "the form")
    await pilot.pause()


def test_every_operation_of_the_registry_is_done_by_a_view_or_by_its_form() -> None:
    done = {operation.FORM.name for operation in OPERATIONS}
    assert done | set(VIEWS_OF_FORMS) == {form.name for form in FORMS}
    assert len({form.key for form in FORMS}) == len(FORMS)


async def test_each_key_opens_its_form_about_the_row_under_the_cursor(services: Services) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("down")
        for form in FORMS:
            if form.name in VIEWS_OF_FORMS:
                continue
            await _open(app, pilot, form.key)
            chosen = [item.value for item in app.screen.query("#field-topic").results(NameInput)]
            typed = [item.value for item in app.screen.query("#field-topics").results(Input)]
            is_about = {"topic", "topics"} & {field.name for field in form.fields}
            is_prefilled = is_about and form.name != "create_topic"
            assert chosen + typed == (["topic-1"] if is_prefilled else [])
            await pilot.press("escape")
            await settle(pilot, lambda: not isinstance(app.screen, OperationScreen), "back")


async def test_a_reset_takes_the_time_that_is_typed_first(services: Services) -> None:
    app = PartiscopeApp(services, path="groups/group-1")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await _open(app, pilot, "O")
        await pilot.press(*"10m")
        assert app.screen.query_one("#field-to", Input).value == "10m"
        assert app.screen.query_one("#field-partitions", Input).value == ""


async def test_what_is_wrong_and_who_does_not_answer_is_told_in_the_form(
    services: Services,
) -> None:
    app = PartiscopeApp(services, path="topics/topic-2")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await _open(app, pilot, "C")
        app.screen.query_one("#field-configs", Input).focus()
        await pilot.press(*"nonsense", "enter")
        hint = app.screen.query_one("#hint-configs", Static)
        await settle(pilot, lambda: "✖" in str(hint.render()), "what is wrong")
        await pilot.press("equals_sign", "1", "enter")
        outcome = app.screen.query_one("#operation-outcome", Static)
        await settle(pilot, lambda: "✖" in str(outcome.render()), "that nobody answers")
        told = str(outcome.render())
        assert not lacking(told, "127.0.0.1:1", "did not answer", "partiscope doctor")
        assert told.endswith(".")


async def test_a_name_that_no_figures_tell_of_is_typed_and_a_known_one_completed(
    services: Services,
) -> None:
    app = PartiscopeApp(services, path="produce")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query(NameInput)), "the form")
        panel, field = app.screen.query_one(FormPanel), app.screen.query_one(NameInput)
        panel.offer("topic", ["billing", "orders"])
        field.focus()
        await pilot.press(*"or")
        await settle(pilot, lambda: field._suggestion == "orders", "the suggestion")
        assert panel.values()["topic"] == "or", "nothing is chosen for the operator"
        await pilot.press("right")
        assert panel.values()["topic"] == "orders"
        field.value = ""
        await pilot.press(*"brand-new")
        panel.offer("topic", ["another", "billing", "orders"])
        assert panel.values()["topic"] == "brand-new"


async def test_back_does_not_lead_to_the_topic_that_was_deleted(services: Services) -> None:
    app = PartiscopeApp(services, path="topics/topic-2")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: len(app.screen_stack) == 3, "the topic")
        app.navigator.leave_form("topics")
        await settle(pilot, lambda: _place(app) == "topics", "the topics")
        await pilot.press("escape")
        await settle(pilot, lambda: _place(app) == "overview", "the overview")


def _place(app: PartiscopeApp) -> str:
    return str(app.screen.path) if isinstance(app.screen, ViewScreen) else ""


async def test_the_cursor_goes_to_the_first_field_that_is_wrong(services: Services) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await _open(app, pilot, "n")
        await pilot.press("tab", "x", "tab", "tab", "enter")
        name = app.screen.query_one("#field-topic", Input)
        await settle(pilot, lambda: app.focused is name, "the name, which lacks")
        assert "✖" in str(app.screen.query_one("#hint-partitions", Static).render())


async def test_keys_about_a_plan_are_there_once_there_is_one(services: Services) -> None:
    app = PartiscopeApp(services, path="plan")
    app.session._operations = CannedSession()  # type: ignore[assignment]
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query("#plan")), "the form")
        about_plan = {"c", "e", "h", "m"}
        assert not about_plan & {key for key, it in app.active_bindings.items() if it.binding.show}
        await pilot.press("ctrl+s")
        await settle(pilot, lambda: about_plan <= set(app.active_bindings), "the plan's keys")


async def test_the_key_of_a_form_is_a_letter_in_a_field(services: Services) -> None:
    app = PartiscopeApp(services, path="partitions")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("slash", *"DanE")
        assert app.screen.query_one("#filter", Input).value == "DanE"


def _fields(app: PartiscopeApp, *names: str) -> list[Input]:
    return [app.screen.query_one(f"#field-{name}", Input) for name in names]


def _arrive(app: PartiscopeApp, *keys: str) -> None:
    """All at once, as over a slow line."""
    for key in keys:
        app.post_message(Key(key, key if len(key) == 1 else None))


async def test_keys_that_arrive_together_act_one_after_the_other(services: Services) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await _open(app, pilot, "n")
        name, count = _fields(app, "topic", "partitions")
        assert app.focused is name
        _arrive(app, *"ordes", "backspace", *"rs", "tab", "ctrl+u", *"12", "home", "3")
        await settle(pilot, lambda: count.value == "312", "all of it")
        assert name.value == "orders"


async def test_a_key_that_is_lost_holds_the_next_ones_for_a_moment_only(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the widget goes before its queue is empty."""
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await _open(app, pilot, "n")
        (name,) = _fields(app, "topic")
        later = name.call_later
        monkeypatch.setattr(name, "call_later", lambda *it: it[0] == app._follow or later(*it))
        _arrive(app, *"ab")
        await settle(pilot, lambda: name.value == "ab", "the second one comes as well")


async def test_a_wrong_word_is_told_and_may_be_typed_again(services: Services) -> None:
    app = PartiscopeApp(services, path="topics")
    answers: list[bool | None] = []
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: _place(app) == "topics", "the topics")
        app.push_screen(ConfirmScreen("Delete orders?", word="orders"), answers.append)
        await settle(pilot, lambda: bool(app.screen.query("#word")), "the question")
        await pilot.press(*"order", "enter")
        problem = app.screen.query_one("#word-problem", Static)
        await settle(pilot, lambda: "'order' is not 'orders'" in str(problem.render()), "why not")
        assert not answers
        await pilot.press("s", "enter")
        await settle(pilot, lambda: answers == [True], "the answer")


@pytest.mark.parametrize(("key", "path"), [("v", "browse/topic-2"), ("P", "produce/topic-2"),
                                           ("R", "plan?topics=topic-2")])  # fmt: skip
async def test_keys_on_the_view_of_a_topic_act_on_the_topic_wherever_the_cursor_stands(
    services: Services, key: str, path: str
) -> None:
    app = PartiscopeApp(services, path="topics/topic-2")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, lambda: _place(app) == "topics/topic-2", "the topic")
        await pilot.press("down", "down", key)
        await settle(pilot, lambda: _place(app) == path, path)
