"""The metrics job at size: from samples in a real topic to the store, and back out of it.

    python -m benchmarks.metrics [--rungs 1k 10k 100k 400k 1m] [--cores 2] [--executors 1]
                                 [--rules 200]

Starts one broker of ours and the job, writes the samples of so many partitions (RF 3, three
brokers' worth; in the last rung each partition is read by ten of 200 groups) every interval, and
watches the store: how long from a round's begin until the store shows it, what a batch takes and
where its time goes, CPU and memory of the job. All partitions have traffic: nothing is saved by
rounds that repeat nothing. Then it times the reader on what was stored. Tells how far it is, and
prints a JSON line for each rung, at last a table and which targets were missed, with the phase
that took most of a batch. With ``--executors`` a standalone Spark on this machine folds by so many
executors of one core; with ``--rules`` alerts by so many rules are delivered beside it. No rung
takes longer than its own limit, all together twenty minutes.
"""

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.alerts_beside import AlertsBeside
from benchmarks.metrics_samples import CLUSTER, TOPIC, Generator
from benchmarks.processes import cpu_seconds, resident_mb
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.cluster import LocalCluster
from tests.support.metrics_job import MetricsJob, processes_below
from tests.support.spark_standalone import StandaloneSpark

READY_S_MAX: Final = 240.0
"""A busy machine takes two minutes to start a master, a worker, the job's JVM and its executors."""
VERSIONS_MIN: Final = 4
PHASES: Final = ("fetch", "decode", "fold", "points", "tables", "history")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One rung: what is sampled, how it is measured, and what is asked of it."""

    partitions: int
    groups: int = 0
    interval_ms: int
    warm_s: float
    seconds: float
    limit_s: float
    """It ends by then, however far it is."""
    to_store_ms_max: float
    """95 of 100 versions are to be no older than that when they appear."""


RUNGS: Final = {
    "1k": Size(
        partitions=1_000,
        interval_ms=1_000,
        warm_s=15,
        seconds=20,
        limit_s=80,
        to_store_ms_max=2_000,
    ),
    "10k": Size(
        partitions=10_000,
        interval_ms=1_000,
        warm_s=30,
        seconds=30,
        limit_s=140,
        to_store_ms_max=2_000,
    ),
    "100k": Size(
        partitions=100_000,
        interval_ms=5_000,
        warm_s=60,
        seconds=45,
        limit_s=165,
        to_store_ms_max=8_000,
    ),
    "400k": Size(
        partitions=400_000,
        interval_ms=10_000,
        warm_s=100,
        seconds=60,
        limit_s=280,
        to_store_ms_max=15_000,
    ),
    "1m": Size(
        partitions=100_000,
        groups=200,
        interval_ms=10_000,
        # Its start leaves a backlog of a minute, which is brought down first.
        warm_s=100,
        seconds=80,
        limit_s=280,
        to_store_ms_max=15_000,
    ),
}
DRIVER_MB_MAX: Final = 3_000


class Watch:
    """Looks at the store's manifest until told to stop: when did which round become visible."""

    def __init__(self, job: MetricsJob, until_s: float) -> None:
        """``until_s``: when the rung's time is over, by the monotonic clock."""
        self._reader = AggregatesReader(job.store)
        self._until_s = until_s
        self.delays_ms: list[float] = []
        self.batches_ms: list[float] = []
        self.delay_ms: float | None = None
        self._seen = 0

    def for_seconds(self, seconds: float, say: str, versions_min: int = 0) -> None:
        """Look until so much time is over and so many versions were seen, and say how it goes."""
        began_s = said_s = time.monotonic()
        while (now_s := time.monotonic()) < self._until_s:
            if now_s > began_s + seconds and len(self.delays_ms) >= versions_min:
                return
            self.look()
            if now_s > said_s + 10:
                said_s = now_s
                newest = (
                    "" if self.delay_ms is None else f", the newest {self.delay_ms:,.0f} ms old"
                )
                print(f"  {say}: {now_s - began_s:.0f} s, {len(self.delays_ms)} versions{newest}")
            time.sleep(0.02)

    def look(self) -> None:
        version = self._reader.version()
        if version is None or version == self._seen:
            return
        now_ms = time.time() * 1_000
        self._seen = version
        (health,) = self._reader.now_table("health").to_pylist()
        self.delay_ms = now_ms - health["newest_round_ms"]
        self.delays_ms.append(self.delay_ms)
        self.batches_ms.append(health["batch_ms"])


def measure(size: Size, cores: int, executors: int, rules: int) -> dict[str, Any]:
    """One rung: warm up, then watch for the wanted time, once the job is ready."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-metrics-") as folder,
        LocalCluster(Path(folder) / "cluster", brokers=1) as cluster,
        ExitStack() as further,
    ):
        spark = StandaloneSpark(Path(folder) / "spark") if executors else None
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, 3, 1)])[TOPIC].result(30)
        generator = Generator(
            cluster.bootstrap,
            partitions=size.partitions,
            groups=size.groups,
            interval_ms=size.interval_ms,
        )
        job = MetricsJob(
            bootstrap=cluster.bootstrap,
            base_dir=Path(folder) / "job",
            flags=("--topic", TOPIC, "--master", f"local[{cores}]", "--say-batches"),
            timeout_s=READY_S_MAX,
        )
        if spark is not None:
            further.enter_context(spark)
            job.environment = spark.environment
            job.flags += _on_executors(spark, job, executors)
        job.start()
        generator.start()
        try:
            job.wait_ready()
            if rules:
                further.enter_context(AlertsBeside(Path(job.store), rules, cluster=CLUSTER))
            watch = Watch(job, time.monotonic() + size.limit_s)
            measured = _watch(size, generator, job, spark, watch)
            return {**measured, "topic_bytes_per_row": _on_disk(Path(folder)) / generator.rows}
        finally:
            generator.stopped.set()
            generator.join(30)
            job.close()


def _on_executors(spark: StandaloneSpark, job: MetricsJob, executors: int) -> tuple[str, ...]:
    """Flags for so many executors of one core."""
    settings = {
        "spark.executor.cores": 1,
        "spark.executor.memory": "512m",
        "spark.cores.max": executors,
    }
    return (
        *("--master", spark.master, "--store", f"file://{job.store}"),
        *("--checkpoint", f"file://{job.base_dir}/checkpoint"),
        *(word for name, of in settings.items() for word in ("--conf", f"{name}={of}")),
    )


def _executors(spark: StandaloneSpark | None) -> list[int]:
    """Processes of the executors, with those of Python."""
    found = spark.executors() if spark is not None else []
    return [*found, *(below for pid in found for below in processes_below(pid))]


def _cpu_seconds(pids: Iterable[int]) -> float:
    return sum(map(cpu_seconds, _alive(pids)))


def _megabytes(pids: Iterable[int]) -> float:
    return sum(map(resident_mb, _alive(pids)))


def _alive(pids: Iterable[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def _watch(
    size: Size,
    generator: Generator,
    job: MetricsJob,
    spark: StandaloneSpark | None,
    watch: Watch,
) -> dict[str, Any]:
    watch.for_seconds(size.warm_s, "warming up", VERSIONS_MIN)
    watch.delays_ms.clear()
    watch.batches_ms.clear()
    assert job.process is not None
    pids = [job.process.pid, *job.jvms()]
    began_s, cpu_s, executors_s = (
        time.monotonic(),
        _cpu_seconds(pids),
        _cpu_seconds(_executors(spark)),
    )
    rounds = generator.rounds
    watch.for_seconds(size.seconds, "measuring", VERSIONS_MIN)
    phases = _phases(job, max(1, len(watch.batches_ms)))
    if not watch.delays_ms:
        raise TimeoutError(f"no version within {size.limit_s:.0f} s; batches before took {phases}")
    took_s = time.monotonic() - began_s
    return {
        "partitions": size.partitions,
        "groups": size.groups,
        "interval_s": size.interval_ms / 1_000,
        "versions": len(watch.delays_ms),
        "rounds": generator.rounds - rounds,
        "batch_ms_p50": statistics.median(watch.batches_ms),
        "batch_ms_max": max(watch.batches_ms),
        **{f"{name}_ms": spent_ms for name, spent_ms in phases.items()},
        "to_store_ms_p50": statistics.median(watch.delays_ms),
        "to_store_ms_p95": _p95(watch.delays_ms),
        "cpu_s_per_s": (_cpu_seconds(pids) - cpu_s) / took_s,
        "executors_cpu_s_per_s": (_cpu_seconds(_executors(spark)) - executors_s) / took_s,
        "job_mb": _megabytes(pids),
        "executors_mb": _megabytes(_executors(spark)),
        "sample_bytes_per_row": generator.bytes / generator.rows,
        "stored_bytes_per_partition_day": _stored(job, size, generator),
        "read_now_ms": _fastest(lambda: _fresh(job).now_table("partitions")),
    }


def _phases(job: MetricsJob, batches: int) -> dict[str, float]:
    """Medians of the phases of the last batches, as the job tells them."""
    told = re.findall(r"metrics: batch \d+ ms (\{.*\})", job.words())[-batches:]
    each = [json.loads(text) for text in told]
    return {name: statistics.median(it[name] for it in each) for name in (each[0] if each else ())}


def missed(size: Size, results: dict[str, Any]) -> list[str]:
    """What was asked of the rung and not reached, and which phase takes most of a batch."""
    asked = {
        "batch_ms_p50": size.interval_ms,
        "to_store_ms_p95": size.to_store_ms_max,
        "job_mb": DRIVER_MB_MAX,
    }
    over = [
        f"{name} {results[name]:,.0f} > {most:,.0f}"
        for name, most in asked.items()
        if results[name] > most
    ]
    phases = {name: results[f"{name}_ms"] for name in PHASES if f"{name}_ms" in results}
    if over and phases:
        longest = max(phases, key=lambda name: phases[name])
        over.append(f"most of a batch is {longest}: {phases[longest]:,.0f} ms")
    return over


def _fresh(job: MetricsJob) -> AggregatesReader:
    return AggregatesReader(job.store)


def _fastest(call: Any) -> float:
    took = []
    for _ in range(5):
        began_s = time.perf_counter()
        call()
        took.append((time.perf_counter() - began_s) * 1_000)
    return statistics.median(took)


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1] if len(values) > 1 else values[0]


def _on_disk(cluster: Path) -> int:
    """Bytes of the metrics topic, of one replica; nothing of it is deleted within the hour."""
    return sum(path.stat().st_size for path in cluster.glob(f"**/{TOPIC}-*/*.log"))


def _stored(job: MetricsJob, size: Size, generator: Generator) -> float:
    """Bytes of fine history per partition and day, as written so far."""
    files = (Path(job.store) / "history").glob("*.parquet")
    total = sum(path.stat().st_size for path in files)
    return total / max(1, generator.rounds) / size.partitions * 86_400_000 / size.interval_ms


def main() -> None:
    """Measure every rung and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rungs", nargs="+", choices=list(RUNGS), default=list(RUNGS))
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--executors", type=int, choices=(0, 1, 2), default=0)
    parser.add_argument("--rules", type=int, default=0, help="of alerts")
    chosen = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    print(f"load before the run: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    measured: dict[str, dict[str, Any]] = {}
    verdicts = []
    for rung in chosen.rungs:
        size = RUNGS[rung]
        print(
            f"{size.partitions:,} partitions, {size.groups} groups, every {size.interval_ms:,} ms"
        )
        try:
            measured[rung] = measure(size, chosen.cores, chosen.executors, chosen.rules)
        except (TimeoutError, AssertionError, KafkaException) as error:
            verdicts.append(f"{rung}: not measured: {error}")
            continue
        print(json.dumps(measured[rung]))
        over = missed(size, measured[rung])
        verdicts.append(f"{rung}: {'missed: ' + '; '.join(over) if over else 'targets reached'}")
    print_table(list(measured.values()))
    print("\n".join(verdicts))


def print_table(measured: list[dict[str, Any]]) -> None:
    """A column for each rung."""
    for name in measured[0] if measured else ():
        print(f"{name:<34}" + "".join(f"{results[name]:>14,.2f}" for results in measured))


if __name__ == "__main__":
    main()
