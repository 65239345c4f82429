"""What operators read: health, lag, offsets, members, configs, messages."""

from typing import Final

from tests.support.tasks.prepared import CHANGED_WHY, MOVED_WHY
from tests.support.tasks.task import Click, Fill, Keys, Kind, Task

NAMES: Final = '.ag-pinned-left-cols-container [row-id="{}"] .ag-cell:not([col-id="mark"])'
"""A row's name, which opens it; beside it stands the box that marks it."""
ORDERS: Final = Click("orders", NAMES.format("orders"))
TO_ORDERS: Final = (Keys("g t"), Fill("filter", "orders", key="/"))

READING: Final = (
    Task(
        asks="Is anything wrong, where, and since when?",
        kind=Kind.READING,
        seen=("STOP on sent-", "since "),
    ),
    Task(
        asks="How far behind is each group?",
        kind=Kind.READING,
        seen=("Groups, worst first", "480"),
        terminal_seen=("GROUPS", "480"),
    ),
    Task(
        asks="Which partition of a group is to blame for its lag?",
        kind=Kind.READING,
        page=(Click("billing", '#group-table a[href="/groups/billing"]'),),
        terminal=(Keys("g g"), Keys("Enter")),
        seen=("orders-3 is to blame: STOP, lag 92",),
    ),
    Task(
        asks="Who consumes a topic?",
        kind=Kind.READING,
        page=(Keys("g t"),),
        terminal=(Keys("g t"),),
        seen=("read by", "billing"),
    ),
    Task(
        asks="What are the first and the last offset of each partition?",
        kind=Kind.READING,
        page=(Keys("g t"), ORDERS),
        terminal=(*TO_ORDERS, Keys("Enter")),
        seen=("high watermark", "112"),
    ),
    Task(
        asks="Who are the members of a group, and what does each read?",
        kind=Kind.READING,
        page=(
            Keys("g g"),
            Click("shipping", NAMES.format("shipping")),
        ),
        terminal=(Keys("g g"), Fill("filter", "shipping", key="/"), Keys("Enter")),
        seen=("shipper", "payments 0-2"),
    ),
    Task(
        asks="Which broker's disk is fullest, and when is it full?",
        kind=Kind.READING,
        seen=("full in", "{disk}"),
    ),
    Task(
        asks="Who is the controller, and are all brokers there?",
        kind=Kind.READING,
        seen=("controller {controller}", "4/4 brokers"),
    ),
    Task(
        asks="How evenly are bytes spread over brokers and racks?",
        kind=Kind.READING,
        seen=("Racks", "={held_a}"),
        terminal_seen=("RACKS", "={held_a}"),
    ),
    Task(
        asks="Which configs of a topic are not the defaults?",
        kind=Kind.READING,
        page=(Keys("g t"), ORDERS, Keys("V")),
        terminal=(*TO_ORDERS, Keys("V")),
        seen=("retention.ms", "172800000 (2 d)"),
    ),
    Task(
        asks="What does a config do?",
        kind=Kind.READING,
        start="topics/orders",
        page=(Keys("V"), Click("retention.ms", '[data-config="retention.ms"] summary')),
        terminal=(Keys("V"), Keys("Enter")),
        seen=("maximum time we will retain a log",),
    ),
    Task(
        asks="What are the newest messages of a topic?",
        kind=Kind.READING,
        page=(Keys("g t"), ORDERS, Keys("v")),
        terminal=(*TO_ORDERS, Keys("v")),
        seen=("order-599",),
    ),
    Task(
        asks="What does one message hold, headers included?",
        kind=Kind.READING,
        start="browse/orders",
        page=(Click("the message", ".message summary"),),
        terminal=(Keys("Enter"),),
        seen=("trace", "CreateTime"),
    ),
    Task(
        asks="What does an internal topic say?",
        kind=Kind.READING,
        start="topics",
        page=(
            Keys("H"),
            Fill("filter", "__consumer", key="/"),
            Click("__consumer_offsets", NAMES.format("__consumer_offsets")),
            Keys("v"),
        ),
        terminal=(Keys("H"), Fill("filter", "__consumer", key="/"), Keys("v")),
        seen=("OffsetCommitValue",),
    ),
    Task(
        asks="Where do the replicas of a topic lie, and are they in sync?",
        kind=Kind.READING,
        page=(Keys("g p"), Fill("filter", "topic:orders", key="/")),
        terminal=(Keys("g p"), Fill("filter", "topic:orders", key="/")),
        seen=("6 of", "2/2"),
    ),
    Task(
        asks="Which segments does a partition have?",
        kind=Kind.READING,
        start="topics/orders",
        page=(
            Click("orders-1", NAMES.format("orders-1")),
            Click("as a table", "summary:has-text('as a table')"),
        ),
        terminal=(Keys("Enter"), Keys("4")),
        seen=("base offset", "=active"),
    ),
    Task(
        asks="Who changed what, when and why?",
        kind=Kind.READING,
        page=(Keys("g j"),),
        terminal=(Keys("g j"),),
        seen=(CHANGED_WHY, "segment.ms: 604800000", "→ 7300000"),
    ),
    Task(
        asks="Which reassignments run, and which ran?",
        kind=Kind.READING,
        page=(Keys("g r"),),
        terminal=(Keys("g r"),),
        seen=(MOVED_WHY, "✔ done"),
    ),
    Task(
        asks="How old are the figures, and does the metrics job keep up?",
        kind=Kind.READING,
        page=(Keys("g h"),),
        terminal=(Keys("g h"),),
        seen=("samples in", "={state_rows}"),
    ),
    Task(
        asks="How was the cluster ten seconds ago?",
        kind=Kind.READING,
        page=(Keys("@"), Fill("At", "10s", enters=False), Click("Show")),
        terminal=(Fill("time", "10s", key="@"),),
        seen=("you are looking at",),
        leaves="Space",
    ),
)
