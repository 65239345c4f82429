"""The child processes of an installation: their commands, environments and logs."""

import sys
from pathlib import Path

from partiscope.bundled.secure_cluster import ALERTS, COLLECTOR, DEMO, EXECUTOR, METRICS, PAGE
from partiscope.health import Health
from partiscope.layout import ClusterLayout, Node
from partiscope.settings import ENV_PREFIX, Settings
from partiscope.supervisor import Part

_BUS_CONFIG = f"{ENV_PREFIX}BUS_CONFIG"
# `-P`: a folder in the working directory must not shadow a room of ours.
PYTHON = (sys.executable, "-P", "-m")


def broker_name(broker: int | str) -> str:
    """The part that is a broker."""
    return f"broker {broker}"


def broker_part(node: Node, data: Path) -> Part:
    """One broker process."""
    return Part(
        name=broker_name(node.id),
        command=(*PYTHON, "broker.server.main", "--config", str(node.config_file)),
        log_file=_log(data, f"broker-{node.id}"),
    )


def broker_parts(layout: ClusterLayout, data: Path) -> list[Part]:
    """Every broker of the bundled cluster."""
    return [broker_part(node, data) for node in layout.nodes]


def metrics_part(settings: Settings, bus: str) -> Part:
    """The Spark job."""
    flags = {
        "--bootstrap": bus,
        "--store": settings.store,
        "--checkpoint": settings.checkpoint,
        "--master": settings.metrics.master,
        "--trigger-ms": str(settings.metrics.trigger_ms),
    }
    if settings.metrics.driver_memory is not None:
        flags["--driver-memory"] = settings.metrics.driver_memory
    if settings.bus_config is not None:
        flags["--command-config"] = str(_config_of(settings.bus_config, METRICS))
    return Part(
        name="metrics",
        command=(*PYTHON, "spark_metrics", *(word for flag in flags.items() for word in flag)),
        log_file=_log(settings.data, "metrics"),
        ready_timeout_s=600.0,
    )


def executor_part(settings: Settings, bus: str) -> Part:
    """The process that carries out operations."""
    return Part(
        name="executor",
        command=(*PYTHON, "partiscope", "executor", "--bus", bus),
        log_file=_log(settings.data, "executor"),
        env=_login(settings, EXECUTOR),
    )


def alerts_part(settings: Settings, bus: str) -> Part:
    """The process that delivers alerts."""
    return Part(
        name="alerts",
        command=(
            *(*PYTHON, "partiscope", "alerts", "run"),
            *("--bus", bus, "--store", settings.store),
        ),
        log_file=_log(settings.data, "alerts"),
        env=_login(settings, ALERTS),
    )


def dashboard_part(settings: Settings, bus: str) -> Part:
    """The web page."""
    flags = {
        "--bus": bus,
        "--store": settings.store,
        "--host": settings.dashboard.host,
        "--port": str(settings.dashboard.port),
    }
    read_only = ("--read-only",) if settings.read_only else ()
    words = (word for flag in flags.items() for word in flag)
    return Part(
        name="dashboard",
        command=(*PYTHON, "partiscope", "dashboard", *words, *read_only),
        log_file=_log(settings.data, "dashboard"),
        env=_login(settings, PAGE),
        health=Health(
            host=settings.dashboard.host,
            port=settings.dashboard.port,
            is_tls=settings.dashboard.certificate is not None,
        ),
    )


def collector_parts(settings: Settings, bus: str) -> list[Part]:
    """A collector for each watched cluster."""
    is_only = len(settings.watching) == 1
    return [
        Part(
            name="collector" if is_only else f"collector of {name}",
            command=(*PYTHON, "partiscope", "collect", "--bootstrap", name, "--bus", bus),
            log_file=_log(settings.data, "collector" if is_only else f"collector-{_plain(name)}"),
            env=_login(settings, COLLECTOR),
        )
        for name in settings.watching
    ]


def demo_part(settings: Settings, bus: str) -> Part:
    """The demo load."""
    return Part(
        name="demo",
        command=(*PYTHON, "partiscope", "demo", "--bootstrap", bus),
        log_file=_log(settings.data, "demo"),
        env=_login(settings, DEMO),
    )


def _login(settings: Settings, user: str) -> dict[str, str]:
    """Environment of a part that logs in as its own user, where the bundled brokers ask for it."""
    admin = settings.bus_config
    return {} if admin is None else {_BUS_CONFIG: str(_config_of(admin, user))}


def _config_of(admin: Path, user: str) -> Path:
    return admin.with_name(f"{user}.properties")


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)


def _log(data: Path, name: str) -> Path:
    return data.absolute() / "logs" / f"{name}.log"
