"""What the page asks before a change, and what it says where a right lacks."""

from dataclasses import replace
from pathlib import Path

import pytest

from control.collector.report_writer import WatchReport
from control.operations.catalogue import MOVE_OPERATIONS
from control.operations.catalogue.brokers.teach_acks import TeachAcks
from control.operations.catalogue.moves.reassign import REASSIGN
from control.operations.catalogue.operation import Operation
from control.operations.catalogue.topics.create_topic import CreateTopic
from control.operations.catalogue.topics.delete_topic import DeleteTopic
from control.operations.catalogue.topics.elect_leaders import ElectLeaders
from control.operations.catalogue.topics.produce import PRODUCE, Produce
from control.operations.errors import NotConfirmedError
from control.operations.previews import Previewed
from control.views.paths import parse_path
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.past import snapshot_at
from control.views.snapshots.store import StoreReader
from dashboard.context import PageContext
from dashboard.page_frame import operation_dialog, palette, rights
from dashboard.pages import produce
from dashboard.pages.reassignments import move
from tests.unit.control.operations.previews import previewed
from tests.unit.dashboard.page_context import context_on, words_of

DENIED = WatchReport(
    cluster="c",
    bootstrap="127.0.0.1:1",
    at_ms=0,
    interval_ms=1_000,
    is_partial=False,
    denied_operations={"reassign": "ALTER on the cluster"},
)


def _production(tmp_path: Path) -> PageContext:
    return context_on(tmp_path, name="prod", bootstrap="127.0.0.1:1", is_production=True)


def _kept(context: PageContext, asked: Operation) -> Previewed:
    """A preview of a cluster that answers."""
    session = context.actions.session
    kept = previewed(asked, context.watched)
    session._previews.keep(kept)
    return kept


async def test_what_changes_production_wants_its_name(tmp_path: Path) -> None:
    context = _production(tmp_path)
    kept = _kept(context, DeleteTopic(topic="topic-1"))
    for typed in ("", "topic-1", "prod"):
        with pytest.raises(NotConfirmedError) as refused:
            await operation_dialog.performed(context, kept.name, typed)
        assert "type prod/topic-1" in refused.value.next_step
    kept = _kept(context, ElectLeaders())
    with pytest.raises(NotConfirmedError) as refused:
        await operation_dialog.performed(context, kept.name, "")
    assert "type prod to" in refused.value.next_step
    assert "Type prod to confirm" in str(operation_dialog.confirmation(kept, {}))


async def test_on_production_no_form_acts_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Creating a topic and producing as well, which elsewhere nothing stands before."""
    context = _production(tmp_path)
    kept = _kept(context, CreateTopic(topic="new"))
    with pytest.raises(NotConfirmedError):
        await operation_dialog.performed(context, kept.name, "")
    assert words_of(operation_dialog.body(context, CreateTopic.FORM, {})).endswith("Preview")
    form = produce.layout(context, parse_path("produce/topic-1"))
    assert "Type prod to send there" in str(form)
    asked = Produce.of(PRODUCE.defaults({"topic": "topic-1"}))

    async def preview(_: Operation) -> Previewed:
        return previewed(asked, context.watched)

    session = context.actions.session
    monkeypatch.setattr(session, "preview", preview)
    with pytest.raises(NotConfirmedError):
        await session.sends.begin(asked)
    calm = context_on(tmp_path, name="test", bootstrap="127.0.0.1:1")
    assert "produce-typed" not in str(produce.layout(calm, parse_path("produce/topic-1")))


def test_a_move_on_production_is_stopped_without_its_name(tmp_path: Path) -> None:
    context = _production(tmp_path)
    asked = {
        each.FORM.name: str(move.question(previewed(each.of(given), context.watched), "mv-1"))
        for each in MOVE_OPERATIONS
        if (given := each.FORM.parse({"move": "mv-1", "throttle": "1MiB"}))
    }
    named = {name for name, question in asked.items() if "Type prod to confirm" in question}
    assert named == {"resume", "throttle", "rollback"}
    assert "Cancel mv-1 after this wave? " in asked["cancel_after_wave"]


async def test_elsewhere_only_what_destroys_wants_a_name(tmp_path: Path) -> None:
    context = context_on(tmp_path, name="test", bootstrap="127.0.0.1:1")
    kept = _kept(context, DeleteTopic(topic="topic-1"))
    with pytest.raises(NotConfirmedError):
        await operation_dialog.performed(context, kept.name, "")
    shown = operation_dialog.confirmation(_kept(context, ElectLeaders()), {})
    assert "operation-typed" not in str(shown)


def test_a_form_says_which_right_lacks(tmp_path: Path) -> None:
    context = context_on(tmp_path)
    assert not rights.is_denied(context, REASSIGN.name)
    feed = SnapshotFeed(StoreReader(str(tmp_path)), watch=lambda: DENIED)
    feed.refresh()
    place = replace(context.chosen, feed=feed)
    context = replace(context, clusters={"": place})
    assert rights.is_denied(context, REASSIGN.name)
    assert "needs ALTER on the cluster" in words_of(rights.lacking(context, REASSIGN.name))
    assert words_of(rights.lacking(context, PRODUCE.name)) == ""
    assert rights.every_word(context).keys() == {
        REASSIGN.name, TeachAcks.FORM.name, *(it.FORM.name for it in MOVE_OPERATIONS)
    }  # fmt: skip
    assert "where `partiscope up` runs them" in rights.words(context, TeachAcks.FORM.name)
    (entry,) = palette.entries(context.snapshot, REASSIGN.title, rights.every_word(context))
    assert "needs ALTER on the cluster" in entry.help


def test_where_nothing_may_be_changed_forms_say_so(tmp_path: Path) -> None:
    context = context_on(tmp_path)
    feed = SnapshotFeed(StoreReader(str(tmp_path)), is_read_only=True)
    feed.refresh()
    context = replace(context, clusters={"": replace(context.chosen, feed=feed)})
    assert rights.is_denied(context, REASSIGN.name)
    assert "read-only here" in words_of(rights.lacking(context, PRODUCE.name))
    assert DeleteTopic.FORM.name in rights.every_word(context)


def test_at_a_past_moment_forms_are_greyed_and_lead_back_to_now(tmp_path: Path) -> None:
    context = context_on(tmp_path)
    past = {"at": "1m"}
    assert rights.is_denied(context, REASSIGN.name, past)
    assert not rights.is_denied(context, REASSIGN.name, {"range": "1h"})
    told = operation_dialog.body(context, DeleteTopic.FORM, {}, past)
    assert "this is a past state" in words_of(told)
    assert "data-now" in str(told)
    assert "browse" not in rights.every_word(context, past), "it changes nothing"
    feed = SnapshotFeed(StoreReader(str(tmp_path)), is_read_only=True)
    feed.refresh()
    fixed = replace(context, clusters={"": replace(context.chosen, feed=feed)})
    assert "read-only here" in rights.words(fixed, REASSIGN.name, past), "now would not help"


def test_a_past_snapshot_knows_that_nothing_can_be_changed(tmp_path: Path) -> None:
    context = context_on(tmp_path)
    at_ms = context.now_ms() - 5_000
    past = snapshot_at(context.reader, cluster=context.snapshot.cluster.cluster, at_ms=at_ms)
    assert past is not None
    assert past.denied_operations.keys() == rights.every_word(context, {"at": "1m"}).keys()
