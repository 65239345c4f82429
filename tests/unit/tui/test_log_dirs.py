"""The log directories of a broker above its partitions."""

from pathlib import Path

from textual.widgets import Static

from tests.support.settle import settle
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows
from tests.unit.control.clusters import log_dir
from tests.unit.tui.conftest import NOW_MS
from tui.app import PartiscopeApp
from tui.terminal_session import Services


async def test_several_log_directories_are_lines_of_their_broker(
    services: Services, tmp_path: Path
) -> None:
    now = synthetic_rows(SyntheticSizes(topics=6, partitions=8, groups=5), at_ms=NOW_MS)
    now["brokers"][0]["directories"] = [
        log_dir("/small", total_bytes=1_000, usable_bytes=20, replicas=3),
        log_dir("/\x1b[31mlarge", is_failed=True),
    ]
    builder = StoreBuilder(tmp_path)
    builder._batch_id = 1_000
    builder.write(now)
    services.feed.refresh()
    broker = str(now["brokers"][0]["broker"])
    app = PartiscopeApp(services, path=f"brokers/{broker}")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query("#log-dirs")), "the view")
        lines = app.screen.query_one("#log-dirs", Static)
        await settle(pilot, lambda: lines.display, "its log directories")
        told = str(lines.render())
        assert "/small" in told
        assert "98 %" in told
        assert "failed" in told
        assert "\x1b" not in told
