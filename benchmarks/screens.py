"""The page at size: first paint, refresh, filter, sort, jump, memory, ten browsers at once.

    python -m benchmarks.screens [--replicas 10000 39000 100000 400000] [--jumps 200] [--rounds 3]
                                 [--rules 200]

Serves `partiscope dashboard` over a synthetic store that gets a new version every 1 to 5 seconds,
as from the metrics job, and drives it with a real Chromium. Acts are measured while it refreshes.
With ``--rules`` a bus runs beside it, and alerts by so many rules are delivered (0: the bus alone).
Prints a table as it goes, then one JSON line. Targets: at 100,000 replicas overview 1.5 s, map
3 s, p95 of acts 300 ms; at 400,000 3 s, 5 s, 500 ms and 1 GB.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser

from benchmarks.alerts_beside import AlertsBeside
from benchmarks.processes import cpu_seconds, resident_mib
from benchmarks.screen_page import PageProbe, painted
from benchmarks.screen_store import PARTITIONS, LivingStore
from tests.support.browser import chromium
from tests.support.page_server import PageServer

SIZES: Final = (10_000, 39_000, 100_000, 400_000)
ACTS: Final = 40
VISITS: Final = 3
BROWSERS: Final = 10
REFRESHES_SEEN: Final = 3
REFRESHES_TIMED: Final = 20
ROUNDS: Final = 3
"""So often CPU is measured with one page and with ten, in turn, of one server."""
OVERVIEW: Final = "#heat-map .heat-plot img"
"""Stands with findings, tiles, bars and tables; history's charts come after."""
HISTORY: Final = "#throughput-chart .scatterlayer .trace"
"""The last of the overview's charts."""
MAP: Final = "#map-figure .heat-plot img"
TABLE: Final = "#grid-partitions .ag-center-cols-container .ag-row"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of one store. Milliseconds unless the name says otherwise; acts are 95th percentiles."""

    replicas: int
    overview: int
    """First visit, empty cache, until findings, tiles, bars and map stand; as the map's the median
    of three."""
    history: int
    """The same until its charts of history stand as well."""
    map: int
    refresh: int
    """From a version's commit until the page shows it; median."""
    filter: int
    sort: int
    jump: int
    jump_max: int
    select: int
    resident_mib: int
    cpu_s: float
    """Of the page's process per refresh with one browser on the overview; median of the rounds."""
    cpu_ten_s: float
    """The same with ten browsers, in turn with one."""
    alerts_cpu_s: float
    """Of the process that delivers alerts, per refresh."""


COLUMNS: Final = tuple(Figures.__dataclass_fields__)


def measure(replicas: int, jumps: int, rounds: int, rules: int | None) -> Figures:
    """One store, one server, one to ten browsers."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as until:
        path = Path(folder) / "store"
        store = until.enter_context(LivingStore(path, replicas))
        alerts = None if rules is None else until.enter_context(AlertsBeside(path, rules))
        flags = () if rules is None else ("--data", str(path.parent / "data"))
        server = until.enter_context(PageServer(path, *flags))
        with chromium() as browser:
            note(f"{store.replicas:,} replicas: server is up")
            pid = server.pid
            overview = _first_visit(browser, f"{server.url}/overview", OVERVIEW)
            history = _first_visit(browser, f"{server.url}/overview", HISTORY)
            shown = _first_visit(browser, f"{server.url}/map", MAP)
            refresh = _refresh(browser, server.url, store)
            probe = PageProbe(browser, server.url)
            probe.open("partitions", TABLE)
            last = f"topic-{store.sizes.topics - 1}-{PARTITIONS - 1}"
            found: dict[str, list[float]] = {}
            acts: tuple[tuple[str, Callable[[], list[float]]], ...] = (
                ("select", lambda: probe.selections(ACTS)),
                ("sort", lambda: probe.sorts(last, ACTS)),
                ("filter", lambda: probe.filters(store.sizes.topics, PARTITIONS, ACTS)),
                ("jump", lambda: probe.jumps(store.partitions, jumps)),
            )
            for name, act in acts:
                found[name] = act()
                middle = statistics.median(found[name])
                note(f"{name}: median {middle:.0f} ms, p95 {p95(found[name])}")
            probe.close()
            before, count = 0.0 if alerts is None else alerts.cpu_s, len(store.commits)
            alone, ten = _cpu_in_turn(browser, server.url, pid, store, rounds)
            refreshes = max(len(store.commits) - count, 1)
            judging = 0.0 if alerts is None else (alerts.cpu_s - before) / refreshes
            resident = round(resident_mib(pid))
    return Figures(
        replicas=store.replicas,
        overview=round(overview),
        history=round(history),
        map=round(shown),
        refresh=refresh,
        **{name: p95(found[name]) for name in ("filter", "sort", "jump", "select")},
        jump_max=round(max(found["jump"])),
        resident_mib=resident,
        cpu_s=_median(alone),
        cpu_ten_s=_median(ten),
        alerts_cpu_s=round(judging, 3),
    )


def _first_visit(browser: Browser, url: str, selector: str) -> float:
    """The median of some, each with an empty cache."""
    found = [painted(browser, url, selector) for _ in range(VISITS)]
    view = url.rpartition("/")[2]
    for words, place in (("painted", 0), ("answers", 1)):
        note(f"{view}: {words} after {', '.join(f'{each[place]:.0f}' for each in found)} ms")
    return statistics.median(each[0] for each in found)


def _refresh(browser: Browser, url: str, store: LivingStore) -> int:
    """Milliseconds from a version's commit until the page shows it."""
    probe = PageProbe(browser, url)
    probe.open("overview", OVERVIEW)
    probe.page.wait_for_timeout(store.interval_s * 1000)
    count = len(store.commits)
    seen = probe.refreshes(REFRESHES_TIMED * store.interval_s + 1)
    commits = store.commits[count:]
    probe.close()
    waits = [min((at - commit for at in seen if at >= commit), default=60) for commit in commits]
    note(f"refresh: {min(waits) * 1000:.0f} to {max(waits) * 1000:.0f} ms of {len(waits)} versions")
    return round(statistics.median(waits) * 1000)


def _cpu_in_turn(
    browser: Browser, url: str, pid: int, store: LivingStore, rounds: int
) -> tuple[list[float], list[float]]:
    """CPU seconds of the page's process per refresh, by rounds: with one page, with ten."""
    alone: list[float] = []
    ten: list[float] = []
    with ExitStack() as always:
        _overviews(browser, url, 1, always)
        for _ in range(rounds):
            alone.append(_cpu_per_refresh(pid, store))
            with ExitStack() as meanwhile:
                _overviews(browser, url, BROWSERS - 1, meanwhile)
                ten.append(_cpu_per_refresh(pid, store))
    note(f"CPU s per refresh: one {alone}, ten {ten}")
    return alone, ten


def _overviews(browser: Browser, url: str, count: int, until: ExitStack) -> None:
    for _ in range(count):
        probe = PageProbe(browser, url)
        until.callback(probe.close)
        probe.open("overview", OVERVIEW)


def _cpu_per_refresh(pid: int, store: LivingStore) -> float:
    """Between two points of time that lie as far after a version each."""
    store.wait_for_next()
    time.sleep(store.interval_s / 2)
    before, count = cpu_seconds(pid), len(store.commits)
    while len(store.commits) < count + REFRESHES_SEEN:
        store.wait_for_next()
    time.sleep(store.interval_s / 2)
    return round((cpu_seconds(pid) - before) / (len(store.commits) - count), 3)


def _median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 3) if values else 0.0


def p95(values: Sequence[float]) -> int:
    """The 95th percentile, the larger neighbour where it falls between two."""
    ranked = sorted(values)
    return round(ranked[min(len(ranked) - 1, int(len(ranked) * 0.95))])


def note(words: str) -> None:
    """Progress, beside the table."""
    print(f"  {time.strftime('%H:%M:%S')} {words}", flush=True)


def main() -> None:
    """Print a table, then one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--replicas", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--jumps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of one page and ten; 0: none")
    parser.add_argument("--rules", type=int, help="of alerts; 0: only their bus; default: neither")
    given = parser.parse_args()
    print("".join(f"{name:>13}" for name in COLUMNS))
    found: list[dict[str, float]] = []
    try:
        for replicas in given.replicas:
            found.append(asdict(measure(replicas, given.jumps, given.rounds, given.rules)))
            print("".join(f"{value:>13,}" for value in found[-1].values()), flush=True)
    finally:
        # What was measured is told even if the rest is cut off.
        load = round(os.getloadavg()[1], 1)
        print(json.dumps({"screens": found, "load_5_min": load}), flush=True)


if __name__ == "__main__":
    main()
