"""Lines about a run of produced messages."""

from dataclasses import replace

from control.kafka.records.producer import Delivery
from control.messages.produce_progress import Latencies, ProduceProgress, Waiting
from control.views.messages.progress import progress_cells
from control.views.tables.rows import Tone
from tests.support.phrases import lacking

LANDED = Delivery(topic="orders", partition=10, offset=1254, timestamp_ms=0, latency_ms=3.1)
ONE = ProduceProgress(
    sent=1, acked=1, failed=0, total=1, elapsed_s=1.0, records_per_s=1.0, latencies=None,
    per_partition={10: 1}, histogram_ms=(), last=LANDED, errors=(), is_done=True,
)  # fmt: skip


def test_one_record_is_told_by_its_place() -> None:
    (line,) = progress_cells(ONE, "all")
    assert line.text == "orders-10 @ 1254, 3.1 ms, acks all"
    assert line.tone is Tone.FINE
    unknown = replace(ONE, last=replace(LANDED, offset=-1))
    assert progress_cells(unknown, "0")[0].text == "orders-10 @ offset unknown, 3.1 ms, acks 0"


def test_many_records_are_told_with_pace_latencies_and_failures() -> None:
    times = Latencies(p50_ms=1.0, p95_ms=2.0, p99_ms=3.0, max_ms=4.0)
    many = replace(
        ONE, acked=3, failed=2, total=5, latencies=times, errors=("line 2: too large",),
        errors_by_kind={"too large": 2},
    )  # fmt: skip
    head, latencies, kinds, first = progress_cells(many, "all")
    assert head.text.startswith("3 of 5 acknowledged, ")
    assert ", 2 failed; last orders-10 @ 1254" in head.text
    assert head.tone is Tone.PLAIN
    assert "p99 3.0 ms" in latencies.text
    assert (kinds.text, kinds.tone) == ("2 × too large", Tone.CRITICAL)
    assert first.text == "line 2: too large"


def test_nothing_acknowledged_is_not_told_as_done() -> None:
    (line,) = progress_cells(replace(ONE, acked=0, last=None), "all")
    assert (line.text, line.tone) == ("nothing was acknowledged", Tone.PLAIN)


def test_who_is_waited_for_is_told_and_how_long() -> None:
    late = Waiting(records=1, seconds=4.2, topic="orders", partitions=(1,), seconds_max=15.0)
    waits = replace(ONE, acked=0, last=None, is_done=False, waiting=late)
    _, one = progress_cells(waits, "all")
    assert one.tone is Tone.WARNING
    assert lacking(one.text, "1 record waits", "orders-1 for 4 s", "given up after 15 s") == []
    many = replace(late, records=2_000, partitions=tuple(range(9)))
    _, several = progress_cells(replace(waits, waiting=many), "all")
    assert (
        lacking(several.text, "2,000 records", "orders-0", "and 4 more", "each is given up") == []
    )
    _, nobody = progress_cells(replace(waits, waiting=replace(late, partitions=())), "all")
    assert "answer of orders for 4 s" in nobody.text
