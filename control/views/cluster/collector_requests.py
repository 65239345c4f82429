"""Requests of the collector to the brokers that it watches, in words."""

from control.collector.report_writer import BrokerReport, WatchReport
from control.views.format import byte_rate_text, count_text
from control.views.tables.rows import Cell, Tone


def load_cell(watch: WatchReport | None, broker: int) -> Cell | None:
    """Cell of one broker: the value is requests per second; None: nobody collects from it."""
    asked = () if watch is None else watch.brokers
    report = next((each for each in asked if each.broker == broker), None)
    if report is None:
        return None
    tone = Tone.PLAIN if report.failure is None else Tone.WARNING
    return Cell(report.requests_per_s, load_words(report), tone)


def load_words(report: BrokerReport) -> str:
    """``4.2 requests/s for 812 rows/s, sends 3.1 KiB/s, gets 22 KiB/s``."""
    rows = round(report.rows_per_s)
    return (
        f"{report.requests_per_s:.1f} requests/s for {count_text(rows)} rows/s, "
        f"sends {byte_rate_text(report.sent_bytes_per_s)}, "
        f"gets {byte_rate_text(report.received_bytes_per_s)}"
    )
