"""What a batch that is behind need not read: rows that a newer round of its source tells. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spark_metrics.heads import Head
from spark_metrics.rounds import SourceKey

Wave = Sequence[tuple[int, Head]]
"""Heads with the numbers of their records in the batch."""


def newest_rounds(wave: Wave) -> list[tuple[int, Head]]:
    """The same heads, without the rows of rounds before their source's newest complete one.

    Of two rows the newest counts, and what a complete round lacks is gone, so nothing is lost,
    unless some of its rows only say that nothing has changed since an earlier one: then all are
    read. What is bad among rows that are not read is not told.
    """
    complete = _complete(wave)
    behind = {_source(head) for _, head in wave if _is_before(head, complete)}
    for _, head in wave:
        if head.part is None or _source(head) not in behind or _is_before(head, complete):
            continue
        if b'"since_ms"' in bytes(head.body):
            behind.discard(_source(head))
    return [
        (number, replace(head, rows={}, body=b""))
        if _is_before(head, complete) and _source(head) in behind
        else (number, head)
        for number, head in wave
    ]


def _complete(wave: Wave) -> dict[SourceKey, int]:
    """When each source's newest complete round began."""
    seen: dict[tuple[SourceKey, int], set[int]] = {}
    newest: dict[SourceKey, int] = {}
    for _, head in wave:
        if head.part is None:
            continue
        key, round_ms = _source(head), head.part.round_ms
        parts = seen.setdefault((key, round_ms), set())
        parts.add(head.part.part)
        if len(parts) == head.part.parts:
            newest[key] = max(newest.get(key, 0), round_ms)
    return newest


def _source(head: Head) -> SourceKey:
    assert head.part is not None
    return SourceKey(head.part.cluster, head.part.broker)


def _is_before(head: Head, complete: Mapping[SourceKey, int]) -> bool:
    """Whether it is of a round before the newest complete one."""
    return head.part is not None and head.part.round_ms < complete.get(_source(head), 0)
