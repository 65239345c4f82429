"""``partiscope produce``: the produce lab."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from control.kafka.admin import KafkaAdmin
from control.kafka.producer import (
    ACKS,
    COMPRESSIONS,
    Delivery,
    ProducerOptions,
)
from control.lab.forecast import Forecast, forecast
from control.lab.keys import KeySpecError
from control.lab.lines import LinesError, lines_of, records_of
from control.lab.partitioners import KeyRule, partitions_for_key
from control.lab.session import ProduceJob, ProduceProgress, ProduceSession
from control.lab.templates import TemplateError
from control.views.format import latency_text, record_rate_text
from partiscope.cli.confirm import require_change
from partiscope.cli.exits import CommandError, Exit
from partiscope.cli.options import Bootstrap, Json, known_bootstrap, note, settings_with, write_json
from partiscope.cli.tables import write_table

TOMBSTONE = "null"


def produce(
    *,
    topic: Annotated[str, typer.Argument(help="Topic to send to.")],
    key: Annotated[
        str | None,
        typer.Option(help="A key, or `seq`, `uniform:N`, `zipf:N[:S]`; {n} is the number."),
    ] = None,
    value: Annotated[
        str, typer.Option(help="A value; {n} {key} {now} {uuid} {random:1-9}; null: tombstone.")
    ] = "{n}",
    partition: Annotated[int | None, typer.Option(min=0, help="Exactly this one.")] = None,
    rule: Annotated[
        KeyRule, typer.Option(help="Whose rule turns a key into a partition.")
    ] = KeyRule.MURMUR2,
    header: Annotated[list[str] | None, typer.Option(help="name=value; repeatable.")] = None,
    timestamp_ms: Annotated[int | None, typer.Option(help="Instead of now.")] = None,
    file: Annotated[
        Path | None, typer.Option(help="One record a line, KEY<tab>VALUE or VALUE.")
    ] = None,
    rate: Annotated[float | None, typer.Option(min=0.01, help="Records per second.")] = None,
    count: Annotated[int, typer.Option(min=1, help="How many records.")] = 1,
    acks: Annotated[str, typer.Option(help="0, 1 or all.")] = "all",
    compression: Annotated[str, typer.Option(help="|".join(COMPRESSIONS))] = "none",
    idempotent: Annotated[bool, typer.Option("--idempotent", help="No duplicates.")] = False,
    keys_from: Annotated[Path | None, typer.Option(help="Keys, one a line.")] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Only show where the keys would land.")
    ] = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Send test messages; the partition that a key will hit is shown before, offsets after."""
    address = known_bootstrap(settings_with(bootstrap=bootstrap))
    keys = tuple(_lines(keys_from)) if keys_from is not None else ()
    if preview:
        _preview(address, topic, keys or ((key or "").encode(),), as_json=as_json)
        return
    require_change(bootstrap)
    if acks not in ACKS or compression not in COMPRESSIONS:
        raise CommandError("acks is 0, 1 or all; compression " + ", ".join(COMPRESSIONS),
                           Exit.WRONG_USE)  # fmt: skip
    lines = _file_lines(file, is_alone=key is None and not keys and count == 1)
    options = ProducerOptions(acks=acks, compression=compression, is_idempotent=idempotent)
    job = ProduceJob(
        topic=topic,
        value=None if value == TOMBSTONE else value,
        keys=key,
        key_list=keys,
        partition=partition,
        rule=rule,
        count=count,
        rate=rate,
        headers=tuple(_header(pair) for pair in header or ()),
        timestamp_ms=timestamp_ms,
        options=options,
        records=records_of(lines),
    )
    if key is not None and file is None and count == 1 and not as_json:
        _say_where(address, topic, key.encode())
    _finish(_run(address, job, is_quiet=as_json), acks, as_json=as_json)


def _run(address: str, job: ProduceJob, *, is_quiet: bool) -> ProduceProgress:
    async def run() -> ProduceProgress:
        last: ProduceProgress | None = None
        async for last in ProduceSession(address, job).run():
            if not is_quiet and job.total > 1 and sys.stderr.isatty():
                sys.stderr.write(f"\r{_progress_line(last)}\033[K")
        assert last is not None
        return last

    try:
        return asyncio.run(run())
    except (KeySpecError, TemplateError) as error:
        raise CommandError(str(error), Exit.WRONG_USE) from error


def _finish(done: ProduceProgress, acks: str, *, as_json: bool) -> None:
    if as_json:
        write_json(_document(done))
    elif done.total == 1 and done.last is not None:
        sys.stdout.write(f"{_landed(done.last)}, acks {acks}\n")
    else:
        note(f"\r{_progress_line(done)}")
        write_table(
            ["partition", "records"],
            [[str(number), str(count)] for number, count in sorted(done.per_partition.items())],
        )
    if done.failed:
        raise CommandError(f"{done.failed} records were not acknowledged: {done.errors[0]}")


def _progress_line(progress: ProduceProgress) -> str:
    latencies = progress.latencies
    times = ""
    if latencies is not None:
        p50, p95, p99 = map(latency_text, (latencies.p50_ms, latencies.p95_ms, latencies.p99_ms))
        times = f"  ack p50 {p50} p95 {p95} p99 {p99}"
    rate = record_rate_text(progress.records_per_s)
    return f"{progress.acked} of {progress.total} acknowledged  {rate}{times}"


def _landed(delivery: Delivery) -> str:
    where = f"{delivery.topic}-{delivery.partition}"
    offset = f"@ {delivery.offset}" if delivery.offset >= 0 else "(no acknowledgement asked)"
    return f"{where} {offset}, {latency_text(delivery.latency_ms)}"


def _document(done: ProduceProgress) -> dict[str, Any]:
    last, latencies = done.last, done.latencies
    return {
        "sent": done.sent,
        "acked": done.acked,
        "failed": done.failed,
        "seconds": round(done.elapsed_s, 3),
        "records_per_s": round(done.records_per_s, 1),
        "per_partition": {str(number): count for number, count in done.per_partition.items()},
        "latency_ms": latencies
        and {"p50": latencies.p50_ms, "p95": latencies.p95_ms, "p99": latencies.p99_ms},
        "last": last and {"partition": last.partition, "offset": last.offset},
        "errors": list(done.errors),
    }


async def _partition_count(address: str, topic: str) -> int:
    async with KafkaAdmin.to(address) as admin:
        (found,) = await admin.topics([topic])
        return len(found.partitions)


def _say_where(address: str, topic: str, key: bytes) -> None:
    partitions = asyncio.run(_partition_count(address, topic))
    places = partitions_for_key(key, partitions)
    note(" · ".join(f"{rule} → {place}" for rule, place in places.items()))


def _preview(address: str, topic: str, keys: tuple[bytes | None, ...], *, as_json: bool) -> None:
    partitions = asyncio.run(_partition_count(address, topic))
    forecasts = [forecast(keys, partitions=partitions, rule=rule) for rule in KeyRule]
    if as_json:
        write_json({"topic": topic, "forecasts": [_forecast_document(item) for item in forecasts]})
        return
    rows = [
        [str(number), *(str(item.records[number]) for item in forecasts)]
        for number in range(partitions)
    ]
    write_table(["partition", *(str(item.rule) for item in forecasts)], rows)
    for item in forecasts:
        note(f"{item.rule}: the fullest partition is {item.skew:+.0%} against the mean")


def _forecast_document(item: Forecast) -> dict[str, Any]:
    return {
        "rule": str(item.rule),
        "records": list(item.records),
        "distinct_keys": item.distinct_keys,
        "skew": item.skew,
    }


def _file_lines(path: Path | None, *, is_alone: bool) -> list[bytes]:
    if path is None:
        return []
    if not is_alone:
        message = "--file has keys and records; leave --key, --keys-from and --count out"
        raise CommandError(message, Exit.WRONG_USE)
    return _lines(path)


def _lines(path: Path) -> list[bytes]:
    try:
        return lines_of(path.read_bytes(), str(path))
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}", Exit.WRONG_USE) from error
    except LinesError as error:
        raise CommandError(str(error), Exit.WRONG_USE) from error


def _header(pair: str) -> tuple[str, bytes]:
    name, equals, value = pair.partition("=")
    if not equals:
        raise CommandError(f"--header {pair!r} is not name=value", Exit.WRONG_USE)
    return name, value.encode()
