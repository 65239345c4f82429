"""A topic's life by the keys of the terminal, on a real cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from control.kafka.admin import KafkaAdmin
from control.kafka.errors import RefusedError
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
        await settle(
            self._pilot,
            lambda: isinstance(self._app.screen, ViewScreen) and str(self._app.screen.path) == path,
            path,
        )

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


async def _partitions(admin: KafkaAdmin, topic: str) -> int:
    try:
        (found,) = await admin.topics([topic])
    except RefusedError:
        return 0
    return len(found.partitions)
