"""Findings about transactions that are open for long: who, since when, and what they hold up."""

from hypothesis import given
from hypothesis import strategies as st

from control.kafka.admin.transactions import HeldPartition, OpenTransaction
from control.model.finding import Finding
from control.model.ids import TopicPartition
from control.model.status import Severity
from control.views.snapshots.transaction_findings import TOLD_MAX, transaction_findings
from control.views.tables.findings import finding_row
from tests.support.phrases import lacking

NOW_MS = 10_000_000
MINUTE_MS = 60_000


def held(partition: int, records: int = 1, *, first: int | None = None) -> HeldPartition:
    key = TopicPartition("orders", partition)
    return HeldPartition(key=key, offset=17, records=records, first_offset=first)


def transaction(name: str | None = "shop", **changes: object) -> OpenTransaction:
    fields: dict[str, object] = {
        "producer_id": 7, "producer_epoch": 1, "transactional_id": name, "state": "Ongoing",
        "since_ms": NOW_MS - 12 * MINUTE_MS, "timeout_ms": 15 * MINUTE_MS, "partitions": 2,
        "held": (held(0),), **changes,
    }  # fmt: skip
    return OpenTransaction(**fields)  # type: ignore[arg-type]


def findings(*items: OpenTransaction) -> list[Finding]:
    return list(transaction_findings(items, now_ms=NOW_MS))


def test_an_open_transaction_tells_who_since_when_and_what_waits() -> None:
    (finding,) = findings(transaction(held=(held(0, 2), held(3, 1_204))))
    row = finding_row(finding, now_ms=NOW_MS)
    assert (finding.severity, finding.label) == (Severity.WARNING, "shop")
    assert row.title.text == "transaction open for 12 m"
    assert not lacking(
        row.reason.text, "id 7", "orders-3 from offset 17 on (1,204 records)", "15 m"
    )
    assert finding.since_ms == NOW_MS - 12 * MINUTE_MS
    (idle,) = findings(transaction(held=()))
    assert idle.severity is Severity.NOTICE
    assert "no record waits in 2 partitions yet" in finding_row(idle, now_ms=NOW_MS).reason.text


def test_one_whose_outcome_is_decided_waits_for_a_leader() -> None:
    (finding,) = findings(transaction(state="PrepareCommit"))
    assert not lacking(finding.reason, "does not take the marker")
    assert "leaders" in finding.next_step


def test_a_hanging_one_comes_first_with_the_command_that_aborts_it() -> None:
    orphan = transaction(None, since_ms=None, held=(held(3, first=19),))
    hanging, known = findings(transaction(), orphan)
    assert (hanging.kind, hanging.label) == ("transaction-hanging", "producer 7")
    assert "--topic orders --partition 3 --start-offset 19`" in hanging.next_step
    assert known.kind == "transaction-open"


@given(st.lists(st.tuples(st.integers(0, NOW_MS), st.integers(0, 9)), max_size=60))
def test_no_transaction_is_left_out_unsaid(times: list[tuple[int, int]]) -> None:
    items = [
        transaction(f"t{n}", since_ms=since_ms, held=(held(0, records),) if records else ())
        for n, (since_ms, records) in enumerate(times)
    ]
    told = findings(*items)
    named = [it for it in told if it.kind == "transaction-open"]
    more = sum(int(it.facts["count"] or 0) for it in told if it.kind == "transactions-open-more")
    assert len(named) == min(len(items), TOLD_MAX)
    assert len(named) + more == len(items)
    oldest = sorted(since_ms for since_ms, _ in times)[: len(named)]
    assert [it.since_ms for it in named] == oldest
