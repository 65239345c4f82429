"""Topics, messages and groups by the keys of the terminal, on real clusters."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.errors import RefusedError
from control.kafka.ports import ConfigResource, ConfigScope, NewTopic
from control.kafka.records.producer import OutgoingRecord, RecordProducer
from control.model.ids import TopicPartition as Key
from control.views.paths import ViewPath
from tests.contract.operations_rig import terminal_on, unique
from tests.support.cluster import LocalCluster
from tests.support.filled_topic import fill
from tests.support.settle import eventually, settle
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows
from tui.app import PartiscopeApp
from tui.screens.base import ViewScreen
from tui.screens.dialogs.confirm import ConfirmScreen
from tui.screens.dialogs.operation import OperationScreen
from tui.widgets.form import FormPanel
from tui.widgets.row_table import RowTable

pytestmark = pytest.mark.thorough


@pytest.fixture
def app(our_cluster: LocalCluster, tmp_path: Path) -> Iterator[PartiscopeApp]:
    with terminal_on(our_cluster.bootstrap, tmp_path) as app:
        yield app


class Typist:
    """Fills forms in and answers questions."""

    def __init__(self, app: PartiscopeApp, pilot: Pilot[None]) -> None:
        self._app, self._pilot = app, pilot

    async def form(self, key: str, **values: str) -> None:
        """Open, fill in, send."""
        await self._pilot.press(key)
        await self._shows(OperationScreen)
        await self._pilot.pause()
        for name, text in values.items():
            field = self._app.screen.query_one(f"#field-{name}", Input)
            field.value = text
            field.focus()
        await self._pilot.press("enter" if values else "ctrl+s")

    async def is_told(self, words: str) -> None:
        """Wait for what the terminal says of what was done."""
        await settle(self._pilot, lambda: words in _told(self._app), words)

    async def confirm(self, word: str = "") -> None:
        """Type the word where one is asked for, else ``y``."""
        await self._shows(ConfirmScreen)
        await self._pilot.pause()
        if word:
            self._app.screen.query_one("#word", Input).value = word
        await self._pilot.press("enter" if word else "y")

    async def comes_to(self, path: str) -> None:
        """Wait for the view that shows what was done."""
        await settle(self._pilot, lambda: self._is_at(path), path)

    def _is_at(self, path: str) -> bool:
        screen = self._app.screen
        has_keys = isinstance(self._app.focused, RowTable)
        return isinstance(screen, ViewScreen) and str(screen.path) == path and has_keys

    async def _shows(self, kind: type) -> None:
        await settle(self._pilot, lambda: isinstance(self._app.screen, kind), kind.__name__)


async def test_a_topic_is_made_grown_and_deleted_by_keys(
    app: PartiscopeApp, our_cluster: LocalCluster
) -> None:
    topic = unique("keys")
    async with app.run_test(size=(100, 40)) as pilot, KafkaAdmin.to(our_cluster.bootstrap) as admin:
        typist = Typist(app, pilot)
        await typist.form("n", topic=topic, partitions="2")
        await typist.confirm()
        await typist.comes_to(f"topics/{topic}")
        await typist.form("a", partitions="5")
        await typist.confirm(word=topic)
        await eventually(lambda: _partitions(admin, topic), 5)
        await typist.comes_to(f"topics/{topic}")
        await typist.form("D")
        await typist.confirm(word=topic)
        await typist.comes_to("topics")
        await eventually(lambda: _partitions(admin, topic), 0)
        wanted = {f"create topic {topic}", f"delete topic {topic}"}
        await settle(
            pilot, lambda: wanted <= {it.what for it in app.session.services.journal()}, "marks"
        )


async def test_where_keys_land_is_shown_before_partitions_are_added(
    app: PartiscopeApp, our_cluster: LocalCluster
) -> None:
    topic = unique("spread")
    async with app.run_test(size=(100, 40)) as pilot, KafkaAdmin.to(our_cluster.bootstrap) as admin:
        await admin.create_topic(NewTopic(name=topic, partitions=2, replication_factor=1))
        app.navigator.open(f"produce/{topic}?then=3&key=k-{{n}}")
        await settle(pilot, lambda: "murmur2 →" in _words(app, "#where"), "its partitions")
        app.screen.query_one("#then", Input).focus()
        await pilot.press("enter")
        moving = " of 10,000 keys move"
        await settle(pilot, lambda: moving in _words(app, "#outcome"), "the spread")
        await pilot.press("backspace", "0", "enter")
        refused = "a whole number from 1"
        await settle(pilot, lambda: refused in _words(app, "#outcome"), "what is wrong")


@pytest.fixture
async def topic_of_five(admin: KafkaAdmin) -> str:
    """One partition on three brokers, of which the leader is not the preferred one."""
    topic = unique("keys")
    await admin.create_topic(NewTopic(name=topic, partitions=1, replication_factor=3))
    ((key, (leader, *others)),) = (await _replicas(admin, topic)).items()
    await admin.alter_reassignments({key: (*others, leader)})
    await eventually(lambda: _replicas(admin, topic), {key: (*others, leader)})
    return topic


@pytest.fixture
def group_of_topic(topic_of_five: str, tmp_path: Path) -> str:
    """A group that the terminal knows to read the topic."""
    group = unique("reader")
    at_ms = time.time_ns() // 1_000_000
    rows = synthetic_rows(SyntheticSizes(topics=1, partitions=1, groups=1), at_ms=at_ms)
    names = {"topic": topic_of_five, "group_id": group}
    StoreBuilder(tmp_path).write(
        {
            table: [{**row, **{k: v for k, v in names.items() if k in row}} for row in found]
            for table, found in rows.items()
        }
    )
    return group


async def test_a_file_is_sent_a_topic_configured_and_led_and_a_group_reset_by_keys(
    bootstrap: str, admin: KafkaAdmin, topic_of_five: str, group_of_topic: str, tmp_path: Path
) -> None:
    topic, group, file = topic_of_five, group_of_topic, tmp_path / "five.tsv"
    file.write_bytes(b"".join(b"key-%d\tvalue %d\n" % (n, n) for n in range(5)))
    with terminal_on(bootstrap, tmp_path) as app:
        async with app.run_test(size=(100, 40)) as pilot:
            typist = Typist(app, pilot)
            app.navigator.open(f"topics/{topic}")
            await typist.comes_to(f"topics/{topic}")
            await _send_file(app, pilot, file)
            await typist.comes_to(f"topics/{topic}")

            await typist.form("C", configs="retention.ms=123456789")
            await typist.confirm()
            await typist.comes_to(f"topics/{topic}/configs")
            await eventually(lambda: _config(admin, topic, "retention.ms"), "123456789")

            ((key, replicas),) = (await _replicas(admin, topic)).items()
            await typist.form("E")
            await typist.confirm()
            await typist.is_told("1 leader elected")
            await eventually(lambda: _leader(admin, topic), replicas[0])

            await admin.groups.commit_offsets(group, {key: 5})
            app.navigator.open(f"groups/{group}")
            await typist.comes_to(f"groups/{group}")
            await typist.form("O", to="2")
            await typist.confirm(word=group)
            await typist.is_told(f"{group} is reset on 1 partition")
            assert await admin.groups.committed_offsets(group) == {key: 2}


async def _send_file(app: PartiscopeApp, pilot: Pilot[None], file: Path) -> None:
    """From the view of a topic and back to it."""
    await pilot.press("P")
    await settle(pilot, lambda: bool(app.screen.query("#file")), "the produce form")
    field = app.screen.query_one("#file", Input)
    field.value = str(file)
    field.focus()
    await settle(pilot, lambda: "the lines of" in _line(app, "#where"), "what will be sent")
    await pilot.press("enter")
    await settle(pilot, lambda: "5 of 5 acknowledged" in _line(app, "#outcome"), "the file is sent")
    await pilot.press("escape")


async def test_a_send_goes_on_when_its_view_is_left_and_the_next_one_stops_it(
    app: PartiscopeApp, our_cluster: LocalCluster
) -> None:
    topic = unique("send")
    async with app.run_test(size=(100, 40)) as pilot, KafkaAdmin.to(our_cluster.bootstrap) as admin:
        await admin.create_topic(NewTopic(name=topic, partitions=1, replication_factor=1))
        form = f"produce/{topic}?count=100000&rate=200"
        app.navigator.open(form)
        await settle(pilot, lambda: bool(app.screen.query("#outcome")), "the produce form")
        await pilot.press("ctrl+s")
        await settle(pilot, lambda: "sending: " in _line(app, "#outcome"), "that it runs")
        app.navigator.open("overview")
        await settle(pilot, lambda: not app.screen.query("#outcome"), "another view")
        app.navigator.open(form)
        await settle(pilot, lambda: bool(app.screen.query("#outcome")), "the form again")
        await settle(pilot, lambda: "sending: " in _line(app, "#outcome"), "that it goes on")
        await pilot.press("escape")
        await settle(pilot, lambda: "stopped: " in _line(app, "#outcome"), "that it has stopped")
        words = _line(app, "#outcome")
        assert "✔" not in words
        acknowledged = int(words.split(" of ")[0].split()[-1].replace(",", ""))
        ends = await admin.offsets.list_offsets([Key(topic, 0)])
        assert ends[Key(topic, 0)].offset == acknowledged > 0


async def test_messages_are_followed_as_they_come(
    app: PartiscopeApp, our_cluster: LocalCluster
) -> None:
    topic = unique("tail")
    async with app.run_test(size=(100, 40)) as pilot, KafkaAdmin.to(our_cluster.bootstrap) as admin:
        await admin.create_topic(NewTopic(name=topic, partitions=2, replication_factor=1))
        app.navigator.open(f"browse/{topic}?q=wanted")
        await settle(pilot, lambda: " none;" in _title(app), "that it is empty")
        await pilot.press("F")
        await settle(pilot, lambda: "following" in _title(app), "that it follows")
        async with RecordProducer(our_cluster.bootstrap) as producer:
            for number in range(40):
                value = b"wanted %d" % number if number % 2 else b"other"
                await producer.send(OutgoingRecord(topic=topic, value=value))
        await settle(pilot, lambda: "40 read, the last 20" in _title(app), "all of them")
        table = app.screen.query_one(RowTable)
        assert table.row_count == 20
        await pilot.press("F")
        await settle(pilot, lambda: "20 match; 40 records scanned" in _title(app), "what is there")
        await pilot.press("x")
        await settle(pilot, lambda: app.screen.query_one("#browse-cel").is_on_screen, "all filters")
        for field, typed, words in (
            ("cel", "value.endsWith('9') && offset >= 0", "4 match; 40 records scanned"),
            ("regex", "wanted (", "regex: 'wanted (': missing )"),
            ("regex", "wanted 3.", "1 match; 40 records scanned"),
        ):
            shown = app.screen.query_one(f"#browse-{field}", Input)
            shown.value = typed
            shown.focus()
            await pilot.press("enter")
            await settle(pilot, lambda said=words: said in _title(app), words)  # type: ignore[misc]


async def test_a_message_in_full_is_decoded_and_sent_again(
    app: PartiscopeApp, our_cluster: LocalCluster
) -> None:
    topic = unique("whole")
    async with app.run_test(size=(100, 40)) as pilot, KafkaAdmin.to(our_cluster.bootstrap) as admin:
        await admin.create_topic(NewTopic(name=topic, partitions=1, replication_factor=1))
        async with RecordProducer(our_cluster.bootstrap) as producer:
            headers = (("shop", b"7"),)
            record = OutgoingRecord(topic=topic, key=b"k", value=b'{"a":1}', headers=headers)
            await producer.send(record)
        app.navigator.open(f"browse/{topic}")
        await settle(pilot, lambda: "1 record read" in _title(app), "the record")
        await pilot.press("enter")
        await settle(pilot, lambda: "value (json)" in _line(app, "#message-text"), "it in full")
        words = _line(app, "#message-text")
        for part in ("CreateTime", "1 record from offset 0", "header shop: 7", '{\n  "a": 1\n}'):
            assert part in words
        await pilot.press("r")
        await settle(pilot, lambda: 'value (raw)\n{"a":1}' in _line(app, "#message-text"), "raw")
        await pilot.press("e")
        await settle(pilot, lambda: bool(app.screen.query("#field-value")), "the produce form")
        values = app.screen.query_one(FormPanel).values()
        wanted = {"key": "k", "value": '{"a":1}', "partition": "0", "headers": "shop=7"}
        assert {name: values[name] for name in wanted} == wanted


async def test_a_search_that_is_stopped_says_how_far_it_came(
    app: PartiscopeApp, our_cluster: LocalCluster
) -> None:
    topic = unique("long")
    fill(our_cluster.bootstrap, topic, count=150_000)
    async with app.run_test(size=(100, 40)) as pilot:
        search = "since=earliest&limit=1000000&cel=value.n+%3D%3D+-1"
        app.navigator.open(f"browse/{topic}?{search}")
        await settle(pilot, lambda: "S stops" in _title(app), "that it runs")
        await pilot.press("S")
        await settle(pilot, lambda: "stopped by hand" in _title(app), "that it has stopped")
        title = _title(app)
        assert title.startswith(f"{topic}  0 match; ")
        assert "not scanned yet" in title
        assert "none" not in title
        assert "no record" not in title.lower()
        await pilot.press("m")
        await settle(pilot, lambda: "3 of 3 partitions whole" in _title(app), "the rest")
        assert "0 match; 150,000 records scanned" in _title(app)


async def test_on_production_a_topic_is_created_once_the_name_was_typed(
    our_cluster: LocalCluster, tmp_path: Path
) -> None:
    topic = unique("prod")
    with terminal_on(our_cluster.bootstrap, tmp_path, is_production=True) as app:
        async with app.run_test(size=(100, 40)) as pilot:
            app.navigator.open_form("create_topic", {"replication_factor": "3"})
            await settle(pilot, lambda: bool(app.screen.query("#field-topic")), "the form")
            app.screen.query_one("#field-topic", Input).value = topic
            await pilot.press("enter")
            await settle(pilot, lambda: isinstance(app.screen, ConfirmScreen), "the question")
            await settle(pilot, lambda: _has_focus(app, "word"), "the field, ready for typing")
            words = _line(app, "#confirm Static")
            assert f"{topic} will be created" in words
            assert "type prod to confirm" in words
            await pilot.press(*"wrong", "enter")
            await settle(pilot, lambda: "is not 'prod'" in _line(app, "#word-problem"), "why not")
            await pilot.press("ctrl+u", *"prod", "enter")
            await settle(pilot, lambda: f"{topic} is created" in _told(app), "that it is made")
    async with KafkaAdmin.to(our_cluster.bootstrap) as admin:
        assert await _partitions(admin, topic) >= 1


def _has_focus(app: PartiscopeApp, name: str) -> bool:
    return app.focused is not None and app.focused.id == name


def _title(app: PartiscopeApp) -> str:
    found = app.screen.query("#browse-title").results(Static)
    return "".join(str(line.render()) for line in found)


def _line(app: PartiscopeApp, selector: str) -> str:
    return "".join(str(line.render()) for line in app.screen.query(selector).results(Static))


def _words(app: PartiscopeApp, place: str) -> str:
    return " ".join(str(line.render()) for line in app.screen.query(place).results(Static))


def _told(app: PartiscopeApp) -> str:
    return " ".join(note.message for note in app._notifications)


async def _replicas(admin: KafkaAdmin, topic: str) -> dict[Key, tuple[int, ...]]:
    (found,) = await admin.topics([topic])
    return {Key(topic, item.partition): tuple(item.replicas) for item in found.partitions}


async def _leader(admin: KafkaAdmin, topic: str) -> int:
    (found,) = await admin.topics([topic])
    return found.partitions[0].leader


async def _config(admin: KafkaAdmin, topic: str, name: str) -> str | None:
    entries = await admin.describe_configs(ConfigResource(scope=ConfigScope.TOPIC, name=topic))
    return next(entry.value for entry in entries if entry.name == name)


async def _partitions(admin: KafkaAdmin, topic: str) -> int:
    try:
        (found,) = await admin.topics([topic])
    except RefusedError:
        return 0
    return len(found.partitions)


async def test_marked_topics_are_deleted_by_one_confirmation(
    bootstrap: str, admin: KafkaAdmin, tmp_path: Path
) -> None:
    names = sorted(unique("marked") for _ in range(3))
    for name in names:
        await admin.create_topic(NewTopic(name=name, partitions=2, replication_factor=1))
    at_ms = time.time_ns() // 1_000_000
    rows = synthetic_rows(SyntheticSizes(topics=4, partitions=4, groups=1), at_ms=at_ms)
    known = {f"topic-{number}": name for number, name in enumerate(names)}
    StoreBuilder(tmp_path).write(
        {
            table: [
                {**row, "topic": known.get(row["topic"], row["topic"])} if "topic" in row else row
                for row in found
            ]
            for table, found in rows.items()
        }
    )
    with terminal_on(bootstrap, tmp_path) as app:
        async with app.run_test(size=(100, 40)) as pilot:
            typist = Typist(app, pilot)
            app.navigator.open("topics?q=topic:marked")
            await settle(pilot, lambda: "3 of 4" in _words(app, "#table-title"), "the rows")
            await pilot.press("m")
            await settle(pilot, lambda: "✔ 1 marked" in _words(app, "#table-title"), "a mark")
            await pilot.press("asterisk")
            await settle(pilot, lambda: "✔ 3 marked" in _words(app, "#table-title"), "all marks")
            table = app.screen.query_one(RowTable)
            assert str(table.get_row_at(0)[0]).startswith("✔ ")
            await admin.delete_topic(names[1])
            await eventually(lambda: _partitions(admin, names[1]), 0)
            await typist.form("D")
            await typist.confirm(word="2 topics")
            done = "2 of 2 topics done"
            await settle(pilot, lambda: done in _words(app, "#operation-outcome"), done)
            for name in (names[0], names[2]):
                assert f"{name}: {name} is deleted" in _words(app, "#operation-outcome")
                await eventually(partial(_partitions, admin, name), 0)


async def test_a_group_with_blanks_around_its_name_is_deleted(
    bootstrap: str, admin: KafkaAdmin, tmp_path: Path
) -> None:
    group, topic = f" {unique('odd')} ", unique("read")
    await admin.create_topic(NewTopic(name=topic, partitions=1, replication_factor=1))
    for name in (group, group.strip()):
        await admin.groups.commit_offsets(name, {Key(topic, 0): 0})
    with terminal_on(bootstrap, tmp_path) as app:
        async with app.run_test(size=(100, 40)) as pilot:
            typist = Typist(app, pilot)
            app.navigator.open(str(ViewPath(view="group", params={"group": group})))
            await settle(pilot, lambda: "is not known" in _words(app, "#tiles"), "the group")
            await typist.form("G")
            await typist.confirm(word=group)
            await typist.is_told(f"{group} is deleted")
    left = {each.group_id for each in await admin.groups.list_groups()}
    assert group not in left
    assert group.strip() in left
