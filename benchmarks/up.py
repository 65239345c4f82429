"""The product as its user feels it: start-up, produce-to-screen, idle CPU.

    python -m benchmarks.up [--runs 5] [--records 40] [--idle-seconds 20]

Starts ``partiscope up --no-demo`` and times: each broker until it is ready, the page until it
shows its first figures, then single records (acks=all) until the page in a real Chromium shows
the new high watermark. Produce-to-screen contains the wait for the next sample (0 to 1 s), so
sample-to-screen is less. At last the CPU of everything but Spark, with nothing to do. Each run
is a new installation; the figures are the medians of the runs.
"""

import argparse
import json
import os
import random
import re
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from playwright.sync_api import Browser, Page

from benchmarks.processes import cpu_seconds
from tests.support.browser import chromium, open_page
from tests.support.installation import Installation

TOPIC: Final = "stopwatch"
SHOWN: Final = "text => document.body.innerText.includes(text)"


def first_figures(up: Installation, browser: Browser, errors: list[str]) -> float:
    """Seconds from the start of `up` until the page shows the figures of three brokers."""
    up.wait_for_line(r"^dashboard +ready")
    page = open_page(browser, up.page, errors)
    page.wait_for_function(SHOWN, arg="3/3 brokers", timeout=120_000)
    took_s = time.monotonic() - up.started_s
    page.close()
    return took_s


def produce_to_screen(up: Installation, page: Page, records: int) -> list[float]:
    """Seconds from sending a record until the page shows it, one by one."""
    producer = Producer(
        {"bootstrap.servers": up.bootstrap, "acks": "all", "linger.ms": 0, "log_level": 0}
    )
    waits, took = random.Random(1), []
    for number in range(1_000, 1_000 + records):
        started_s = time.monotonic()
        producer.produce(TOPIC, f"record {number}".encode())
        assert producer.flush(10) == 0
        page.wait_for_function(SHOWN, arg=f"{number + 1:,}", timeout=30_000)
        took.append(time.monotonic() - started_s)
        time.sleep(waits.random())  # Sending must not fall into step with sampling.
    return took


def _wait_until_known(up: Installation) -> None:
    """Until the store knows the topic with its first thousand records."""
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        aggregates = up.aggregates()
        rows = aggregates.tables["partitions"].to_pylist() if aggregates is not None else []
        if any(row["topic"] == TOPIC and row["high_watermark"] == 1_000 for row in rows):
            return
        time.sleep(0.2)
    raise AssertionError(f"{TOPIC} never reached the store")


def idle_percent(up: Installation, seconds: float) -> float:
    """Percent of one core that everything but the Spark job takes."""
    pids = [pid for pid, command in up.children().items() if "park" not in command.split("-P")[-1]]
    pids = [pid for pid in pids if "java" not in up.children().get(pid, "")]
    before = sum(map(cpu_seconds, pids))
    time.sleep(seconds)
    return 100 * (sum(map(cpu_seconds, pids)) - before) / seconds


def run(records: int, idle_seconds: float) -> dict[str, Any]:
    """All of it, on one installation."""
    errors: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="bench-up-") as folder,
        chromium() as browser,
        Installation(Path(folder), flags=("--no-demo",)) as up,
    ):
        figures_s = first_figures(up, browser, errors)
        up.wait_ready()
        brokers = [line for line in up.lines if line.startswith("broker")]
        found = [re.search(r"ready in +([\d.]+) s", line) for line in brokers]
        ready_s = [float(match.group(1)) for match in found if match]
        admin = AdminClient({"bootstrap.servers": up.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(20)
        producer = Producer({"bootstrap.servers": up.bootstrap, "log_level": 0})
        for _ in range(1_000):
            producer.produce(TOPIC, b"filling")
        assert producer.flush(20) == 0
        _wait_until_known(up)
        page = open_page(browser, f"{up.page}/topics/{TOPIC}/partitions/0", errors)
        page.wait_for_function(SHOWN, arg="1,000", timeout=60_000)
        took = produce_to_screen(up, page, records)
        page.close()
        idle = idle_percent(up, idle_seconds)
        stop_s = up.stop()
    assert not errors, errors
    return {
        "slowest broker ready, s": max(ready_s),
        "first figures on the page, s": figures_s,
        "produce to screen p50, s": statistics.median(took),
        "produce to screen p95, s": statistics.quantiles(took, n=20)[-1],
        "idle CPU beside Spark, % of a core": idle,
        "stop, s": stop_s,
    }


def main() -> None:
    """Measure and print a table and a JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--records", type=int, default=40)
    parser.add_argument("--idle-seconds", type=float, default=20.0)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    runs = []
    for number in range(options.runs):
        runs.append(run(options.records, options.idle_seconds))
        print(f"run {number + 1} of {options.runs}", flush=True)
    results = {name: statistics.median(one[name] for one in runs) for name in runs[0]}
    print(f"load before the first run: {load:.2f} on {os.cpu_count()} cores")
    for name, value in results.items():
        print(f"{name:<38}{value:>8.2f}")
    print(json.dumps({"load": load, **results, "runs": runs}))


if __name__ == "__main__":
    main()
