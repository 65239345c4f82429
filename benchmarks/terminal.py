"""The terminal as it is over SSH: first data, key to redraw, bytes per refresh, memory.

    python -m benchmarks.terminal [--replicas 10000 100000] [--refreshes 10] [--size 120x36]
                                  [--path overview] [--over-ssh] [--rules 200]

Runs `partiscope tui` on a pseudo-terminal over a synthetic store that gets a new version every 1
to 5 seconds, as from the metrics job; with --over-ssh through a real sshd on loopback, whose login
is told by itself: first data counts from where the session runs the command. From one version to
the next is one refresh, the ticks of its age included. Keys are pressed by turns right after a
version was written, while the terminal takes it in, and in the quiet before the next.
Targets at 100,000: first data 1 s, key to redraw 50 ms, 20 kB per refresh, 200 MB and flat.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.alerts_beside import AlertsBeside
from benchmarks.screen_store import LivingStore
from tests.support.ssh_server import SshServer, why_no_ssh
from tests.support.terminal import Terminal

KEYS: Final = ((b"g", b"go to"), (b"\x1b", b"quit"))
"""A line over the footer, and the footer again: each with words that only its redraw writes."""
BUSY_S: Final = 0.6
"""Within so long after a version is written the terminal has begun to take it in."""
WARM_UP: Final = 2
"""Refreshes before memory is looked at."""
STARTS: Final = 5
"""Terminals that are started for first data, one after the other."""
SETTLE_S: Final = 1.0
"""A terminal is started so long after a version was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of one store. Times in milliseconds, medians and the worst; bytes and memory likewise."""

    replicas: int
    login_s: float
    first_data_s: float
    first_data_s_max: float
    bytes_per_refresh: int
    bytes_per_refresh_max: int
    network_bytes_per_refresh: int | None
    """What SSH made of them; None: not over SSH."""
    key_ms: float
    """In the quiet."""
    key_ms_max: float
    busy_key_ms: float
    """Pressed during a refresh."""
    busy_key_ms_max: float
    resident_mib: int
    grown_mib: int
    """At the end, against ``WARM_UP``."""
    proportional_mib: int


class Probe:
    """One terminal over one store."""

    def __init__(self, terminal: Terminal, store: LivingStore, *, is_over_ssh: bool) -> None:
        self._terminal, self._store, self._is_over_ssh = terminal, store, is_over_ssh
        self.bytes: list[int] = []
        self.network: list[int] = []
        self.keys_ms: list[float] = []
        self.busy_keys_ms: list[float] = []
        self.resident: list[int] = []

    def refresh(self, turn: int, turns: int) -> None:
        """From a version to the next: how much is written, how fast the keys are.

        What the keys themselves make the terminal write is not counted.
        """
        before = self._received()
        self.bytes.append(len(self.until_commit()))
        self.network.append(self._received() - before)
        self._terminal.read(BUSY_S * turn / turns)
        self.busy_keys_ms += self._press_all()
        self.until_commit(before_s=1.0)
        self.keys_ms += self._press_all()
        self.until_commit()
        self.resident.append(self._terminal.resident_mib())

    def _press_all(self) -> list[float]:
        return [self._terminal.press(key, answer) for key, answer in KEYS]

    def _received(self) -> int:
        return self._terminal.received_bytes() if self._is_over_ssh else 0

    def until_commit(self, before_s: float = 0.0) -> bytes:
        """Read until the next version is written, or until so long before."""
        count, found = len(self._store.commits), b""
        until = self._store.commits[-1] + self._store.interval_s - before_s if before_s else None
        while len(self._store.commits) == count and (until is None or time.time() < until):
            found += self._terminal.read(0.02)
        return found


@contextmanager
def started(
    store: LivingStore, folder: Path, size: tuple[int, int], path: str, over: SshServer | None
) -> Iterator[tuple[Terminal, float]]:
    """A terminal that was started in the quiet after a version, and its seconds to first data."""
    count = len(store.commits)
    while len(store.commits) == count:
        time.sleep(0.01)
    time.sleep(SETTLE_S)
    with Terminal(folder, size, path=path, over=over) as terminal:
        terminal.read_until(b" ago")
        yield terminal, time.monotonic() - terminal.started_s


def measure(
    replicas: int,
    refreshes: int,
    size: tuple[int, int],
    *,
    path: str,
    is_over_ssh: bool,
    rules: int | None,
) -> Figures:
    """One store; terminals one after the other, of which the last one is used."""
    logins_s: list[float] = []
    firsts_s: list[float] = []
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        LivingStore(path_of_store := Path(folder) / "store", replicas) as store,
        SshServer() if is_over_ssh else nullcontext() as over,
        nullcontext() if rules is None else AlertsBeside(path_of_store, rules),
    ):
        start = partial(started, store, path_of_store, size, path, over)
        for number in range(STARTS):
            with start() as (terminal, first_s):
                logins_s.append(terminal.login_s)
                firsts_s.append(first_s)
                if number == STARTS - 1:
                    probe = Probe(terminal, store, is_over_ssh=is_over_ssh)
                    probe.until_commit()
                    for turn in range(refreshes):
                        probe.refresh(turn, refreshes)
                    proportional_mib = terminal.proportional_mib()
    return Figures(
        replicas=store.replicas,
        login_s=round(statistics.median(logins_s), 2),
        first_data_s=round(statistics.median(firsts_s), 2),
        first_data_s_max=round(max(firsts_s), 2),
        bytes_per_refresh=int(statistics.median(probe.bytes)),
        bytes_per_refresh_max=max(probe.bytes),
        network_bytes_per_refresh=int(statistics.median(probe.network)) if is_over_ssh else None,
        key_ms=round(statistics.median(probe.keys_ms), 1),
        key_ms_max=round(max(probe.keys_ms), 1),
        busy_key_ms=round(statistics.median(probe.busy_keys_ms), 1),
        busy_key_ms_max=round(max(probe.busy_keys_ms), 1),
        resident_mib=max(probe.resident),
        grown_mib=probe.resident[-1] - probe.resident[min(WARM_UP, refreshes) - 1],
        proportional_mib=proportional_mib,
    )


COLUMNS: Final = ("replicas", "login s", "first s", "worst", "B", "worst", "network B", "key ms",
                  "worst", "busy", "worst", "MiB", "grown", "PSS")  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table, then one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--replicas", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--refreshes", type=int, default=10)
    parser.add_argument("--size", default="120x36")
    parser.add_argument("--path", default="overview")
    parser.add_argument("--over-ssh", action="store_true")
    parser.add_argument("--rules", type=int, help="of alerts; 0: only their bus; default: neither")
    given = parser.parse_args(arguments)
    if given.over_ssh and (lacking := why_no_ssh()):
        sys.exit(f"skipped: {lacking}")
    columns, _, rows = given.size.partition("x")
    print("".join(f"{name:>10}" for name in COLUMNS))
    found = []
    for replicas in given.replicas:
        figures = measure(
            replicas,
            given.refreshes,
            (int(columns), int(rows)),
            path=given.path,
            is_over_ssh=given.over_ssh,
            rules=given.rules,
        )
        found.append(asdict(figures))
        print("".join(f"{it:>10,}" if it is not None else f"{'–':>10}"
                      for it in found[-1].values()), flush=True)  # fmt: skip
    print(json.dumps({"terminal": found}))


if __name__ == "__main__":
    main()
