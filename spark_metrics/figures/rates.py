"""Rates of counters between two readings of one run of one leader. Pure."""

from typing import Final

from spark_metrics.figures.column import Column, first_of, where
from spark_metrics.figures.lists import Lists

RATE_WINDOW_MS: Final = 3_000
"""Rates are taken over so much time, or between two readings where these are rarer."""


def base_place(read_ms: Lists, run: Lists, most: int) -> Column:
    """Place of the leader's reading, newest first, from which the rates of the newest are taken.

    The oldest within the window, or the one before the newest; both of one run of the broker.
    """
    last_ms, last_run = read_ms.item(0), run.item(0)
    earlier = {
        place: run.item(place).equals(last_run) & (read_ms.item(place) < last_ms)
        for place in range(1, most)
    }
    near = {
        place: is_earlier & (read_ms.item(place) >= last_ms - RATE_WINDOW_MS)
        for place, is_earlier in earlier.items()
    }
    return first_of(
        *((near[place], place) for place in reversed(near)),
        *((earlier[place], place) for place in earlier),
    )


def rate(newest: Column, base: Column, span_ms: Column) -> Column:
    """Change per second; unknown where the span is not known, and of a counter that has fallen."""
    return ((newest - base) / (span_ms / 1_000.0)).where(newest >= base)


def leader_rates(readings: Lists, is_offline: Column, most: int) -> dict[str, Column]:
    """Records and bytes per second of each row; 0 where the partition is offline.

    ``readings``: a leader's (``schema.READING``), newest first. Bytes in are those of the log where
    the broker does not count them.
    """
    times = readings.field("read_ms")
    place = base_place(times, readings.field("broker_epoch"), most)
    at = place.or_else(-1).numpy()
    span_ms = times.item(0) - times.item(at)

    def of(counter: str) -> Column:
        values = readings.field(counter)
        return rate(values.item(0), values.item(at), span_ms)

    counts_bytes = readings.field("bytes_in").item(0).is_known
    rates = {
        "in_records_per_s": of("high_watermark"),
        "in_bytes_per_s": where(counts_bytes, of("bytes_in"), of("size_bytes")),
        "out_bytes_per_s": of("bytes_out"),
    }
    return {name: where(is_offline, 0.0, value) for name, value in rates.items()}
