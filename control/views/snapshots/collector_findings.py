"""The collector's own word on a watched cluster, as findings, and who listens to it.

A figure of a watched cluster can be old because a broker does not answer, and the picture can be
partial because rights lack: both are said as findings, beside those of the figures themselves.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import Final

from control.collector.report_writer import REPORT_INTERVAL_MS, WatchReport
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError
from control.model.finding import Finding
from control.model.ids import ClusterId
from control.model.status import Severity

SILENT_MS: Final = 5 * REPORT_INTERVAL_MS
"""A report older than this: the collector does not run, or the bus does not take its word."""
FIRST_RETRY_S: Final = 0.5
RETRY_S_MAX: Final = 10.0
STOP_TIMEOUT_S: Final = 5.0
FAILING_MS_MIN: Final = 3_000
"""A broker that failed for a shorter time is not worth a finding: leaders move, brokers restart."""


def watch_findings(report: WatchReport, *, now_ms: int) -> Iterator[Finding]:
    """Findings about how the figures came about."""
    if now_ms - report.at_ms > SILENT_MS:
        yield _finding(
            "collector-silent",
            Severity.WARNING,
            label="collector",
            title="is silent" if report.unheard is None else "is not heard",
            reason=f"nothing was heard of {report.bootstrap} for some time; figures stay as "
            f"they were{f': {report.unheard}' if report.unheard else ''}",
            next_step="look at logs/collector.log, or start `partiscope collect`"
            if report.unheard is None
            else "see that the bundled brokers run (`partiscope doctor`); it is read again by "
            "itself",
            since_ms=report.at_ms,
        )
        return
    if report.failure is not None:
        yield _finding(
            "cluster-away",
            Severity.CRITICAL,
            label="watched cluster",
            title="does not answer",
            reason=report.failure,
            next_step="check the brokers and the network; figures come back by themselves",
        )
    for broker in report.brokers:
        since_ms = broker.failing_since_ms
        if since_ms is not None and now_ms - since_ms >= FAILING_MS_MIN:
            yield _finding(
                "broker-not-sampled",
                Severity.WARNING,
                subject=f"brokers/{broker.broker}",
                label=f"broker {broker.broker}",
                title="is not sampled",
                reason=broker.failure or "it does not answer",
                next_step="check the broker; its figures stay as they were until then",
                since_ms=since_ms,
            )
    yield from _gap_findings(report)
    if report.denied_operations:
        names = sorted(report.denied_operations.items())
        yield _finding(
            "operations-denied",
            Severity.NOTICE,
            label="operations",
            title="some are not allowed",
            reason="; ".join(f"{name.replace('_', ' ')} needs {right}" for name, right in names),
            next_step="; ".join(
                ("grant them (noticed within seconds), or watch only", *report.grant_all)
            ),
        )


def _gap_findings(report: WatchReport) -> Iterator[Finding]:
    for right in report.missing_rights:
        yield _finding(
            f"right-missing-{right.api}",
            Severity.WARNING,
            label=f"{right.operation} on {right.resource}",
            title="the view may be partial" if report.is_partial else "some figures are n/a",
            reason=right.text,
            next_step=f"grant it: {right.acl}",
            since_ms=right.since_ms,
        )


def _finding(
    kind: str,
    severity: Severity,
    *,
    label: str,
    title: str,
    reason: str,
    next_step: str,
    subject: str = "overview",
    since_ms: int | None = None,
) -> Finding:
    # Words of others may hold braces, which the templates of findings would take for fields.
    return Finding(
        kind=kind,
        severity=severity,
        subject=subject,
        label=label,
        title=title,
        reason="{what}",
        next_step=next_step,
        since_ms=since_ms,
        facts={"what": reason},
    )


class ReportWatch:
    """Follows the reports on a bus in a thread of its own; begins again, more and more slowly,
    where the bus cannot be read."""

    def __init__(self, bus: KafkaSettings | str) -> None:
        self._bus = bus
        self._reports: dict[str, WatchReport] = {}
        self._trouble: str | None = None
        self._loop = asyncio.new_event_loop()
        self._following = self._loop.create_task(self._follow())
        self._thread = threading.Thread(target=self._run, name="report-watch", daemon=True)
        self._thread.start()

    def newest(self, cluster: ClusterId) -> WatchReport | None:
        """The newest report of a cluster; None: none was read yet."""
        report = self._reports.get(cluster)
        return report and replace(report, unheard=self._trouble)

    def stop(self) -> None:
        """End the thread and its connections."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._following.cancel)
            self._thread.join(STOP_TIMEOUT_S)

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._following)
        self._loop.close()

    async def _follow(self) -> None:
        # Loaded here: who watches nobody's cluster needs no Kafka client.
        from control.collector.report_reader import follow_reports

        pause_s = FIRST_RETRY_S
        while True:
            try:
                async for reports in follow_reports(self._bus):
                    pause_s, self._trouble = FIRST_RETRY_S, None
                    self._reports |= {report.cluster: report for report in reports}
            except KafkaPortError as error:
                self._trouble = str(error)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, RETRY_S_MAX)


_watch_of: Final = cache(ReportWatch)
"""One follower of a bus for all of a process's screens and clusters."""


def report_watch(bus: str | None, cluster: ClusterId | None) -> Callable[[], WatchReport | None]:
    """The newest report of the cluster, for a screen's feed; nothing if no cluster is named."""
    if bus is None or cluster is None:
        return lambda: None
    return partial(_watch_of(bus).newest, cluster)


def read_report(bus: KafkaSettings | str, cluster: ClusterId) -> WatchReport | None:
    """The newest report of a cluster, read now; None where nobody collects, or no bus answers."""
    return read_reports(bus).get(cluster)


def read_reports(bus: KafkaSettings | str) -> dict[str, WatchReport]:
    """The newest report of every cluster, read now; none where no bus answers."""
    try:
        return asyncio.run(_reports(bus))
    except KafkaPortError:
        return {}


async def _reports(bus: KafkaSettings | str) -> dict[str, WatchReport]:
    """Loaded here: who watches nobody's cluster needs no Kafka client."""
    from control.collector.report_reader import read_reports

    return await read_reports(bus)
