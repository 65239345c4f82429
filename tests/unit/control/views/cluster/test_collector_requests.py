"""The collector's load in words, for both screens."""

from control.collector.report_writer import BrokerReport, WatchReport
from control.views.cluster.collector_requests import load_cell
from control.views.tables.rows import Tone

BROKER = BrokerReport(
    broker=101,
    requests_per_s=4.234,
    rows_per_s=1_812.4,
    sent_bytes_per_s=3_174,
    received_bytes_per_s=22_528,
    failing_since_ms=5,
    failure="it does not answer",
)
WATCH = WatchReport(
    cluster="c",
    bootstrap="k:9092",
    at_ms=9,
    interval_ms=1_000,
    is_partial=False,
    brokers=(BROKER,),
)


def test_what_is_asked_of_a_broker_is_said_with_units() -> None:
    cell = load_cell(WATCH, 101)
    assert cell is not None
    assert cell.text == "4.2 requests/s for 1,812 rows/s, sends 3.1 KiB/s, gets 22.0 KiB/s"
    assert cell.tone is Tone.WARNING, "it fails"
    assert load_cell(WATCH, 102) is None
    assert load_cell(None, 101) is None
