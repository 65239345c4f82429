"""Topics and messages by the keys of the terminal, on a real cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from control.kafka.admin import KafkaAdmin
from control.kafka.errors import RefusedError
from control.kafka.ports import NewTopic
from control.kafka.producer import OutgoingRecord, RecordProducer
from control.model.fleet import WatchedCluster
from control.views.feed import SnapshotFeed
from spark_metrics.aggregates import AggregatesReader
from tests.contract.operations_rig import unique
from tests.support.cluster import LocalCluster
from tests.support.settle import eventually, settle
from tui.app import PartiscopeApp
from tui.screens.base import ViewScreen
from tui.screens.confirm import ConfirmScreen
from tui.screens.operation import OperationScreen
from tui.services import Services
from tui.widgets.row_table import RowTable


@pytest.fixture
def app(our_cluster: LocalCluster, tmp_path: Path) -> Iterator[PartiscopeApp]:
    reader = AggregatesReader(str(tmp_path))
    feed = SnapshotFeed(reader)
    address = our_cluster.bootstrap
    watched = WatchedCluster(bootstrap=address)
    yield PartiscopeApp(Services(feed=feed, history=reader, watched=watched, bus=address))
    feed.stop()


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
        await self._pilot.press("enter")

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
        await typist.comes_to(f"topics/{topic}")
        await typist.form("a", partitions="5")
        await typist.confirm()
        await eventually(lambda: _partitions(admin, topic), 5)
        await typist.comes_to(f"topics/{topic}")
        await typist.form("D")
        await typist.confirm(word=topic)
        await typist.comes_to("topics")
        await eventually(lambda: _partitions(admin, topic), 0)


async def test_messages_are_followed_as_they_come(
    app: PartiscopeApp, our_cluster: LocalCluster
) -> None:
    topic = unique("tail")
    async with app.run_test(size=(100, 40)) as pilot, KafkaAdmin.to(our_cluster.bootstrap) as admin:
        await admin.create_topic(NewTopic(name=topic, partitions=2, replication_factor=1))
        app.action_open(f"browse/{topic}?q=wanted")
        await settle(pilot, lambda: "no message" in _title(app), "that it is empty")
        await pilot.press("F")
        await settle(pilot, lambda: "following" in _title(app), "that it follows")
        async with RecordProducer(our_cluster.bootstrap) as producer:
            for number in range(40):
                value = b"wanted %d" % number if number % 2 else b"other"
                await producer.send(OutgoingRecord(topic=topic, value=value))
        await settle(pilot, lambda: "40 read, the last 20 that match" in _title(app), "all of them")
        table = app.screen.query_one(RowTable)
        assert table.row_count == 20
        await pilot.press("F")
        await settle(pilot, lambda: "40 read, 20 match" in _title(app), "what is there now")


def _title(app: PartiscopeApp) -> str:
    found = app.screen.query("#browse-title").results(Static)
    return "".join(str(line.render()) for line in found)


async def _partitions(admin: KafkaAdmin, topic: str) -> int:
    try:
        (found,) = await admin.topics([topic])
    except RefusedError:
        return 0
    return len(found.partitions)
