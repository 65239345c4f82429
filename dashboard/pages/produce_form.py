"""Words of the produce page about a form's values and a session. Pure."""

from base64 import b64decode
from collections.abc import Mapping

from control.lab.lines import lines_of, records_of
from control.lab.partitioners import KeyRule, partitions_for_key
from control.lab.session import KeyAndValue, ProduceProgress
from control.model.ids import no_partition_words
from control.views import format as text
from control.views.key_preview import key_line, partition_count
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.rows import SHAPES, Tone

_DRAWN = ("none", "seq")
_DRAWN_PREFIXES = ("uniform:", "zipf:")


def records_of_file(chosen: Mapping[str, str] | None) -> tuple[KeyAndValue, ...]:
    """The lines of the file that the browser has read (``name``, and ``contents`` as a data URL);
    none where none is chosen.

    Raises:
        LinesError: a file that cannot be sent.
    """
    if not chosen:
        return ()
    data = b64decode(chosen["contents"].partition(",")[2])
    return records_of(lines_of(data, chosen["name"]))


def preview_words(snapshot: OperatorSnapshot, values: Mapping[str, str]) -> str:
    """Where the record will land, as far as can be said before sending."""
    topic, key, partition = values["topic"], values["key"], values["partition"]
    count = partition_count(snapshot, topic)
    if not topic or not count:
        return "choose a topic to see where a key lands"
    if partition and not (partition.isdecimal() and int(partition) < count):
        return f"{SHAPES[Tone.CRITICAL]} {no_partition_words(topic, partition, count)}"
    if partition:
        return f"partition {partition}. Key ignored: explicit partition"
    if not key or key == "none":
        return f"no key: the client spreads such records over all {count} partitions"
    if key in _DRAWN or key.startswith(_DRAWN_PREFIXES):
        return f"many keys: each goes by its rule to one of {count} partitions"
    first = key.replace("{n}", "0")
    answers = partitions_for_key(first.encode(), count)
    rule = KeyRule(values["rule"] or KeyRule.MURMUR2)
    ordered = {str(rule): answers[rule], **{str(k): v for k, v in answers.items()}}
    words = key_line(ordered, snapshot, topic)
    return words if first == key else f"first key {first}: {words}"


def result_words(acks: str, progress: ProduceProgress) -> str:
    """``orders-10 @ 254, 3.1 ms, acks all``; with a count, how many and how fast."""
    last = progress.last
    landed = ""
    if last is not None:
        offset = "offset unknown (acks 0)" if last.offset < 0 else f"{last.offset:,}"
        latency = text.latency_text(last.latency_ms)
        landed = f"{last.topic}-{last.partition} @ {offset}, {latency}, acks {acks}"
    if progress.total == 1:
        return landed or "nothing was acknowledged"
    pace = text.record_rate_text(progress.records_per_s)
    failed = f", {progress.failed:,} failed" if progress.failed else ""
    return f"{progress.acked:,} of {progress.total:,} acknowledged, {pace}{failed}; last {landed}"


def latency_words(progress: ProduceProgress) -> str:
    """Percentiles of acknowledgement times."""
    found = progress.latencies
    if found is None:
        return ""
    return (
        f"p50 {text.latency_text(found.p50_ms)} · p95 {text.latency_text(found.p95_ms)} · "
        f"p99 {text.latency_text(found.p99_ms)} · max {text.latency_text(found.max_ms)}"
    )
