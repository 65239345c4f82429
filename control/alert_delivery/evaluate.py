"""Judges alert rules by a snapshot: rows that match, and rows that nobody can judge."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from control.alerts.machine import ALERTS_MAX
from control.alerts.readings import Match, Reading, RuleReading
from control.alerts.rules import AlertRule, RuleError
from control.model.command_line import typed
from control.model.finding import Finding, each_of
from control.views.format import NONE, phrase
from control.views.next_steps import action_of
from control.views.snapshots.alert_findings import FIRING_KIND
from control.views.snapshots.snapshot import LISTS, OperatorSnapshot
from control.views.tables.column import Column, Table
from control.views.tables.filters import (
    FieldKind,
    FilterError,
    FilterField,
    filter_mask,
    filter_truth,
    parse_filter,
)

FINDINGS: Final = "findings"
WORDS_MAX: Final = 2_000
"""Characters that an alert says of its row."""
AT_LEAST: Final = "≥"
"""A sum of which some parts are unknown begins so."""
_KEYS: Final = ("group_id", "topic", "partition", "broker", "name")
"""Columns that the keys of rows are made of."""
_FINDING_COLUMNS: Final = ("severity", "kind", "subject", "finding")
FINDING_FIELDS: Final = {it: FilterField(it, FieldKind.TEXT, it) for it in _FINDING_COLUMNS}

OpenMatches = Mapping[str, Mapping[str, Match]]
"""Rows of a rule's open alerts by subject, by the rule's name."""
NONE_OPEN: Final[OpenMatches] = MappingProxyType({})


def check_rule(rule: AlertRule) -> None:
    """Refuse a filter that its table cannot follow, before anybody relies on it.

    Raises:
        RuleError: an unknown column, or a value of the wrong kind.
    """
    condition = rule.condition
    try:
        if condition.table == FINDINGS:
            filter_mask(_finding_table(()), condition.filter, FINDING_FIELDS, name_column="subject")
        else:
            kind = LISTS[condition.table].kind
            empty = _empty_of(kind)
            filter_mask(empty, condition.filter, kind.filters, name_column=kind.searched)
    except FilterError as error:
        raise RuleError(f"{rule.when!r}: {error}") from error


def reading_of(
    snapshot: OperatorSnapshot,
    rules: Sequence[AlertRule],
    *,
    cluster: str,
    at_ms: int,
    open_matches: OpenMatches = NONE_OPEN,
    keeps_words: bool = False,
) -> Reading:
    """The reading of a snapshot by all rules. ``keeps_words``: rows of open alerts keep the words
    that they have, which spares most of the work while many rows match."""
    return Reading(
        cluster=cluster,
        at_ms=at_ms,
        rules={
            it.name: _rule_reading(
                snapshot, it, at_ms, open_matches.get(it.name, {}), keeps_words=keeps_words
            )
            for it in rules
            if it.is_for(cluster)
        },
    )


def _rule_reading(
    snapshot: OperatorSnapshot,
    rule: AlertRule,
    at_ms: int,
    open_ones: Mapping[str, Match],
    *,
    keeps_words: bool,
) -> RuleReading:
    is_old = snapshot.evidence.freshness.are_all_unheard
    is_old |= not snapshot.is_past and snapshot.is_stale(at_ms)
    if rule.condition.table == FINDINGS:
        return _of_findings(snapshot, rule, open_ones, is_old=is_old)
    if snapshot.is_empty or is_old:
        return RuleReading(is_known=False)
    return _of_rows(snapshot, rule, open_ones, keeps_words=keeps_words)


def _of_findings(
    snapshot: OperatorSnapshot, rule: AlertRule, open_ones: Collection[str], *, is_old: bool
) -> RuleReading:
    """A finding that is gone while figures are old has not ended: nobody looks."""
    findings = [it for it in each_of(snapshot.findings) if it.kind != FIRING_KIND]
    table = _finding_table(findings)
    mask = filter_mask(table, rule.condition.filter, FINDING_FIELDS, name_column="subject")
    told = [findings[place] for place in np.flatnonzero(mask).tolist()]
    matches = {it.subject: it for it in map(partial(_finding_match, snapshot), told)}
    return RuleReading(
        matches=matches,
        unknown=frozenset(open_ones).difference(matches) if is_old else frozenset(),
    )


def _finding_table(findings: Sequence[Finding]) -> pa.Table:
    return pa.table(
        {
            "severity": pa.array([it.severity.name.lower() for it in findings], pa.string()),
            "kind": pa.array([it.kind for it in findings], pa.string()),
            "subject": pa.array([it.label for it in findings], pa.string()),
            "finding": pa.array([phrase(it.title, it.facts) for it in findings], pa.string()),
        }
    )


def _finding_match(snapshot: OperatorSnapshot, finding: Finding) -> Match:
    row = snapshot.finding_row(finding)
    title, reason = (phrase(it, finding.facts) for it in (finding.title, finding.reason))
    return Match(
        subject=finding.id,
        words=_cut(f"{finding.label}: {title}. {typed(reason)}"),
        path=finding.subject,
        next_step=_cut(row.next_step.text),
        step=action_of(row).path,
    )


def _of_rows(
    snapshot: OperatorSnapshot,
    rule: AlertRule,
    open_ones: Mapping[str, Match],
    *,
    keeps_words: bool,
) -> RuleReading:
    listed, condition = LISTS[rule.condition.table], rule.condition
    kind, table = listed.kind, listed.table(snapshot)
    passes, unsure = filter_truth(table, condition.filter, kind.filters, name_column=kind.searched)
    asked = _asked_columns(kind, condition.filter)
    places = np.flatnonzero(passes)
    keys = _keys(kind, table, places)
    new = [place for place, key in enumerate(keys) if key not in open_ones]
    left_out = new[max(ALERTS_MAX - (len(keys) - len(new)), 0) :]
    kept = {key: open_ones[key] for key in keys if key in open_ones} if keeps_words else {}
    told = [n for n, key in enumerate(keys) if key not in kept]
    rows = table.take(pa.array(places[sorted({*told}.difference(left_out))], pa.int64()))
    made = map(partial(_row_match, kind, asked), rows.to_pylist())
    matches = kept | {it.subject: it for it in made}
    return RuleReading(
        matches=matches,
        unknown=_unknown_ones(kind, table, np.flatnonzero(unsure), asked, open_ones),
        left_out=len(left_out),
    )


def asked_fields(rule: AlertRule) -> list[tuple[str, str]]:
    """Fields of the filter of a list, by name, with the columns that hold them."""
    kind = LISTS[rule.condition.table].kind
    terms = parse_filter(rule.condition.filter)
    return [(it.field, kind.filters[it.field].column) for it in terms if it.field in kind.filters]


def _asked_columns(kind: Table, text: str) -> list[Column]:
    """The columns that the filter asks, and the status, as far as the table has one."""
    names = [*dict.fromkeys(it.field for it in parse_filter(text) if it.field), "status"]
    return list({it.id: it for name in names for it in _named(kind, name)}.values())


def _named(kind: Table, name: str) -> list[Column]:
    return [it for it in (*kind.columns, *kind.unlisted) if name in it.filters][:1]


def _keys(kind: Table, table: pa.Table, places: Any) -> list[str]:
    parts = table.select([it for it in _KEYS if it in table.column_names])
    return [kind.key(record) for record in parts.take(pa.array(places)).to_pylist()]


def _row_match(kind: Table, asked: Sequence[Column], record: Mapping[str, Any]) -> Match:
    words = ", ".join(f"{it.title} {it.cell(record).text}" for it in asked)
    return Match(subject=kind.key(record), words=_cut(words), path=kind.path(record))


def _unknown_ones(
    kind: Table, table: pa.Table, places: Any, asked: Sequence[Column], open_ones: Collection[str]
) -> frozenset[str]:
    """Open alerts whose row lacks a figure that the filter asks."""
    if not open_ones or not len(places):
        return frozenset()
    keys = _keys(kind, table, places)
    chosen = [place for place, key in zip(places, keys, strict=True) if key in open_ones]
    records = table.take(pa.array(chosen, pa.int64())).to_pylist()
    lags = _named(kind, "lag")
    return frozenset(kind.key(it) for it in records if _lacks(it, asked, lags))


def _lacks(record: Mapping[str, Any], asked: Sequence[Column], lags: Sequence[Column]) -> bool:
    """Whether a figure is unknown. One that does not apply (–) is known not to match, such as the
    time until lag is cleared where there is none; but a group whose commits are gone has no lag
    that could be compared, and has not caught up."""
    has_lag = all(it.cell(record).value is not None for it in lags)
    cells = [it.cell(record) for it in asked]
    return any(
        it.text.startswith(AT_LEAST) or (it.value is None and (it.text != NONE or not has_lag))
        for it in cells
    )


def _empty_of(kind: Table) -> pa.Table:
    """No rows, with every column that the table's filters ask."""
    types = {
        FieldKind.TEXT: pa.string(),
        FieldKind.WORDS: pa.string(),
        FieldKind.IDS: pa.list_(pa.int64()),
        FieldKind.NUMBER: pa.float64(),
        FieldKind.DURATION: pa.float64(),
    }
    asked = {it.column: types[it.kind] for it in kind.filters.values()}
    return pa.schema({**asked, kind.searched: pa.string()}).empty_table()


def _cut(words: str) -> str:
    return words if len(words) <= WORDS_MAX else f"{words[: WORDS_MAX - 1]}…"
