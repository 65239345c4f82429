"""Drops the rows that a newer round of the same source in the batch tells again. Pure."""

import json
from collections.abc import Mapping
from dataclasses import replace

from broker.metrics.packed import parts_of
from spark_metrics.decode.record_head import Head, NumberedHeads
from spark_metrics.state.rounds import SourceKey


def newest_rounds(step: NumberedHeads) -> list[tuple[int, Head]]:
    """The same heads, without the rows of rounds before their source's newest complete one.

    Of two rows the newest counts, and what a complete round lacks is gone, so nothing is lost,
    unless some of its rows only say that nothing has changed since an earlier one: then all are
    read. A record that is not read counts as bad where its body is not as it should be, as far as
    that can be told without reading the rows: of columns that are packed, by their layout.
    """
    complete = _complete_rounds(step)
    behind = {_source(head) for _, head in step if _is_before(head, complete)}
    for _, head in step:
        if head.part is None or _source(head) not in behind or _is_before(head, complete):
            continue
        if b'"since_ms"' in bytes(head.body):
            behind.discard(_source(head))
    return [
        (number, _let_go(head))
        if _is_before(head, complete) and _source(head) in behind
        else (number, head)
        for number, head in step
    ]


def _let_go(head: Head) -> Head:
    """The same without its rows."""
    return replace(head, rows={}, body=b"", is_bad=head.is_bad or not _is_whole(head))


def _is_whole(head: Head) -> bool:
    """Whether the layout of packed columns can be read, and fits their bytes."""
    if not head.is_packed:
        return True
    line, _, packed = bytes(head.body).partition(b"\n")
    try:
        parts = parts_of(json.loads(line), packed)
    except (ValueError, TypeError, LookupError, AttributeError):
        return False
    return all(f"{kind}_columns" in parts for kind, rows in (head.rows or {}).items() if rows)


def _complete_rounds(step: NumberedHeads) -> dict[SourceKey, int]:
    """When each source's newest complete round began."""
    seen: dict[tuple[SourceKey, int], set[int]] = {}
    newest: dict[SourceKey, int] = {}
    for _, head in step:
        if head.part is None:
            continue
        key, round_ms = _source(head), head.part.round_ms
        parts = seen.setdefault((key, round_ms), set())
        parts.add(head.part.part)
        if head.part.is_whole(parts):
            newest[key] = max(newest.get(key, 0), round_ms)
    return newest


def _source(head: Head) -> SourceKey:
    assert head.part is not None
    return head.part.source


def _is_before(head: Head, complete: Mapping[SourceKey, int]) -> bool:
    """Whether it is of a round before the newest complete one."""
    return head.part is not None and head.part.round_ms < complete.get(_source(head), 0)
