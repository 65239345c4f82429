"""``partiscope up``: everything."""

from dataclasses import replace
from typing import Annotated

import typer

from partiscope.cli.shared.exits import CommandError
from partiscope.cli.shared.options import (
    Bootstraps,
    Brokers,
    CommandConfig,
    Data,
    Port,
    Rejoin,
    SchemaRegistry,
    Secure,
    cluster_with,
    settings_with,
)
from partiscope.identity import cluster_by_name
from partiscope.installation import prepare
from partiscope.layout import ClusterLayout, check_port, hold
from partiscope.running import reached, run_until_signal, start_everything
from spark_metrics.job.connector_jars import fetch_jars, say_on_stderr
from spark_metrics.job.java import JavaMissingError, find_java
from spark_metrics.window.errors import MetricsError

DashboardPort = Annotated[
    int | None, typer.Option(min=1, max=65_535, help="Port of the page.  [default: 8050]")
]


def up(
    *,
    brokers: Brokers = None,
    data: Data = None,
    port: Port = None,
    rejoin: Rejoin = None,
    secure: Secure = None,
    dashboard_port: DashboardPort = None,
    no_demo: Annotated[bool, typer.Option("--no-demo", help="Without the demo load.")] = False,
    bootstrap: Bootstraps = None,
    command_config: CommandConfig = None,
    schema_registry: SchemaRegistry = None,
) -> None:
    """Run cluster, metrics job, executor, dashboard and demo load until Ctrl-C."""
    settings = settings_with(
        data=data,
        watch=bootstrap,
        command_config=command_config,
        schema_registry=schema_registry,
        finds_installation=False,
    )
    page = settings.dashboard.model_copy(update={"port": dashboard_port or settings.dashboard.port})
    cluster = cluster_with(settings.cluster, brokers=brokers, port=port, secure=secure)
    settings = settings.model_copy(update={"dashboard": page, "cluster": cluster})
    _check_spark_can_run()
    hold(settings.data)
    settings, installation = prepare(settings, wants_port=port is not None)
    layout = ClusterLayout.prepare(settings.data, settings.cluster, rejoin=rejoin or ())
    layout.check_ports()
    check_port(page.host, page.port, flag="--dashboard-port")
    is_production = cluster_by_name(settings, layout.bootstrap).is_production
    with_demo = not no_demo and settings.watched() is None and not is_production
    replace(installation, demo=with_demo, bus_config=layout.bus_config).save(settings.data)
    settings = reached(settings, layout)
    raise typer.Exit(
        run_until_signal(
            lambda supervisor: start_everything(supervisor, layout, settings, with_demo=with_demo),
            outages_in=None if settings.watching else settings.data,
            teaches=not is_production,
        )
    )


def _check_spark_can_run() -> None:
    """Checks what no restart would bring, and fetches what is missing, before all else."""
    try:
        find_java()
        fetch_jars(say_on_stderr)
    except (JavaMissingError, MetricsError) as error:
        raise CommandError(str(error)) from error
