"""The checks of ``partiscope doctor``."""

import asyncio
import enum
import os
import shlex
import shutil
import socket
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.config.broker_config import BrokerConfig
from broker.config.errors import ConfigError
from broker.host_name import address_text, bare_host
from control.kafka.connection.connections import settings_of
from control.kafka.connection.wire import explain_unreachable
from control.kafka.errors import KafkaPortError
from control.views.snapshots.collector_findings import read_report
from partiscope.bundled.founded_cluster import LayoutError
from partiscope.layout import OTHERS, ClusterLayout, check_port
from partiscope.removal import is_in_use
from partiscope.settings import Settings
from spark_metrics.job import connector_jars
from spark_metrics.job.java import DRIVER_MEMORY, JavaMissingError, find_java, refusal
from spark_metrics.window.aggregates import (
    AggregatesReader,
    StoreUnreadableError,
    set_aside_folders,
)
from spark_metrics.window.errors import MetricsError

GIB: Final = 1024**3
DISK_FREE_MIN: Final = 2 * GIB
MEMORY_MIN: Final = 2 * GIB
CONNECT_TIMEOUT_S: Final = 2.0


class Verdict(enum.StrEnum):
    """How bad a finding is."""

    FINE = "fine"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    verdict: Verdict
    found: str
    next_step: str = ""


def diagnose(settings: Settings, *, reach: str | None, bundled: str) -> list[Check]:
    """All checks; ``reach`` is a cluster that must answer, ``bundled`` one that may be running."""
    memory = settings.metrics.driver_memory or DRIVER_MEMORY
    checks = [_python(), _java(memory), _connector(), _disk(settings.data), _memory()]
    checks.extend(_private(settings.data))
    checks.extend(_proof(settings))
    checks.extend(_store(settings.store))
    checks.extend(_cluster(settings, bundled))
    checks.extend(_watched(settings))
    if reach is not None:
        checks.extend(_reach(address, must=True) for address in reach.split(","))
    return checks


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    return Check(name="python", verdict=Verdict.FINE, found=found)


def _java(memory: str) -> Check:
    """There is one, and its JVM starts with the metrics job's heap."""
    try:
        java = find_java()
    except JavaMissingError as error:
        what, _, next_step = str(error).partition(". ")
        return Check(name="java", verdict=Verdict.CRITICAL, found=what, next_step=next_step)
    if why := refusal(java, memory):
        return Check(
            name="java",
            verdict=Verdict.CRITICAL,
            found=f"{java.home}/bin/java does not start with a heap of {memory}: {why}",
            next_step="set metrics.driver_memory lower, or JAVA_HOME to another Java 17 or 21",
        )
    return Check(name="java", verdict=Verdict.FINE, found=f"Java {java.version} at {java.home}")


def _connector() -> Check:
    try:
        found = connector_jars.connector_jars()
    except MetricsError as error:
        return Check(
            name="connector",
            verdict=Verdict.CRITICAL,
            found=f"{error.what}: {error.why}",
            next_step=error.what_next,
        )
    return Check(name="connector", verdict=Verdict.FINE, found=f"{len(found)} jars in the cache")


def _disk(data: Path) -> Check:
    place = next(path for path in (data.absolute(), *data.absolute().parents) if path.exists())
    usage = shutil.disk_usage(place)
    found = f"{usage.free / GIB:.1f} of {usage.total / GIB:.1f} GiB free at {place}"
    if not os.access(place, os.W_OK):
        return Check(
            name="disk",
            verdict=Verdict.CRITICAL,
            found=f"{place} is not writable",
            next_step="choose another place with --data",
        )
    if usage.free < DISK_FREE_MIN:
        return Check(
            name="disk",
            verdict=Verdict.WARNING,
            found=found,
            next_step="free some space, or choose another place with --data",
        )
    return Check(name="disk", verdict=Verdict.FINE, found=found)


def _store(store: str) -> Iterator[Check]:
    """The figures that are kept can be read, and none were set aside."""
    try:
        is_there, aside = AggregatesReader(store).version() is not None, set_aside_folders(store)
    except StoreUnreadableError as error:
        yield Check(
            name="store",
            verdict=Verdict.CRITICAL,
            found=f"{error.what}: {error.why}",
            next_step=error.what_next,
        )
        return
    except (OSError, ValueError) as error:
        yield Check(
            name="store",
            verdict=Verdict.CRITICAL,
            found=f"{store} cannot be reached: {error}",
            next_step="check --store, its disk and its rights",
        )
        return
    yield Check(
        name="store",
        verdict=Verdict.FINE,
        found=f"{store} can be read" if is_there else f"{store} is not begun yet",
    )
    for folder in aside:
        yield Check(
            name="store",
            verdict=Verdict.WARNING,
            found=f"{folder} holds files that the metrics job could not go on with",
            next_step="logs/metrics.log says why; delete them when nobody wants them",
        )


def _private(data: Path) -> Iterator[Check]:
    """Other users of the machine cannot read records, events and logs."""
    try:
        is_open = bool(stat.S_IMODE(data.stat().st_mode) & OTHERS)
    except OSError:
        return
    place = data.absolute()
    yield Check(
        name="data",
        verdict=Verdict.WARNING if is_open else Verdict.FINE,
        found=f"{place} is {'open to other users' if is_open else 'for its owner alone'}",
        next_step=f"chmod -R go= {shlex.quote(str(place))}" if is_open else "",
    )


def _proof(settings: Settings) -> Iterator[Check]:
    """The executor asks for proof, and nobody else can read the key that proves."""
    if not settings.proof.required:
        yield Check(
            name="proof",
            verdict=Verdict.WARNING,
            found="the executor obeys commands of anybody who may write to the bus",
            next_step="set proof.required = true once older moves have ended",
        )
    file = settings.key_file
    try:
        is_open = bool(stat.S_IMODE(file.stat().st_mode) & OTHERS)
    except OSError:
        return
    yield Check(
        name="proof",
        verdict=Verdict.WARNING if is_open else Verdict.FINE,
        found=f"{file} {'can be read by others' if is_open else 'is for its owner alone'}",
        next_step=f"chmod 600 {shlex.quote(str(file))}" if is_open else "",
    )


def _memory() -> Check:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return Check(name="memory", verdict=Verdict.FINE, found="n/a on this system")
    found = f"{total / GIB:.1f} GiB"
    if total < MEMORY_MIN:
        return Check(
            name="memory",
            verdict=Verdict.WARNING,
            found=found,
            next_step="Spark wants about 1 GiB; set metrics.driver_memory lower",
        )
    return Check(name="memory", verdict=Verdict.FINE, found=found)


def _cluster(settings: Settings, bundled: str) -> Iterator[Check]:
    """One that runs answers; any other can be started: its directory, properties and ports."""
    if settings.bus is not None or is_in_use(settings.data):
        yield from (_reach(address, must=False) for address in bundled.split(","))
        return
    try:
        layout = ClusterLayout.planned(settings.data, settings.cluster)
        for properties in layout.properties():
            BrokerConfig.from_properties(properties)
    except LayoutError as error:
        yield _refused("cluster", error)
        return
    except ConfigError as error:
        yield Check(
            name="cluster",
            verdict=Verdict.CRITICAL,
            found=str(error),
            next_step="mend it in [cluster.overrides] of the settings file",
        )
        return
    brokers = [(node.host, port, "--port") for node in layout.nodes for port in node.ports]
    for host, port, flag in (
        *brokers,
        (settings.dashboard.host, settings.dashboard.port, "--dashboard-port"),
    ):
        yield _port(host, port, flag)


def _watched(settings: Settings) -> Iterator[Check]:
    """A cluster of somebody else: it lets us in, and which rights lack while it is collected."""
    watched = settings.watched()
    if watched is None:
        return
    try:
        asyncio.run(explain_unreachable(settings_of(watched.bootstrap)))
    except KafkaPortError as error:
        yield Check(
            name="watched",
            verdict=Verdict.CRITICAL,
            found=str(error),
            next_step=error.next_step,
        )
        return
    yield Check(
        name="watched", verdict=Verdict.FINE, found=f"{watched.bootstrap} answers and lets us in"
    )
    cluster = settings.shown_cluster
    report = None if cluster is None else read_report(settings.bundled_bootstrap, cluster)
    for right in () if report is None else report.missing_rights:
        yield Check(name="rights", verdict=Verdict.WARNING, found=right.text, next_step=right.acl)


def _port(host: str, port: int, flag: str) -> Check:
    try:
        check_port(host, port, flag=flag)
    except LayoutError as error:
        return _refused("port", error)
    return Check(name="port", verdict=Verdict.FINE, found=f"{address_text(host, port)} is free")


def _refused(name: str, error: LayoutError) -> Check:
    found, _, next_step = str(error).partition(". ")
    return Check(name=name, verdict=Verdict.CRITICAL, found=found, next_step=next_step)


def _reach(address: str, *, must: bool) -> Check:
    try:
        with socket.create_connection(_split(address), timeout=CONNECT_TIMEOUT_S):
            return Check(name="broker", verdict=Verdict.FINE, found=f"{address} answers")
    except (OSError, ValueError) as error:
        return Check(
            name="broker",
            verdict=Verdict.CRITICAL if must else Verdict.WARNING,
            found=f"{address} does not answer: {error}",
            next_step="start it, or check the address and the firewall",
        )


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return bare_host(host), int(port)
