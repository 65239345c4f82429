"""What operators look for: messages, laggards, large topics, what a loss would do, differences."""

from typing import Final

from tests.support.tasks.prepared import UNLED
from tests.support.tasks.task import Click, Fill, Keys, Kind, Task

MORE: Final = Click("More filters", "summary:has-text('More filters')")
STARTS: Final = Click("Start", "#browse-start")

FINDING: Final = (
    Task(
        asks="A message by its key",
        kind=Kind.FINDING,
        start="browse/orders",
        page=(MORE, Fill("Key", "order-42")),
        terminal=(Fill("key", "order-42", key="x", tabs=1),),
        seen=("order-42", "1 match"),
    ),
    Task(
        asks="Messages that contain a text",
        kind=Kind.FINDING,
        start="browse/orders",
        page=(Fill("Contains", "failed"),),
        terminal=(Fill("contains", "failed", key="/"),),
        seen=("order-77", "1 match"),
    ),
    Task(
        asks="The message at an offset of a partition",
        kind=Kind.FINDING,
        start="topics/orders/partitions/3",
        page=(
            Click("Browse messages"),
            STARTS,
            Click("offset", '[role=option]:has-text("offset")'),
            Fill("At", "107"),
        ),
        terminal=(Keys("v"), Fill("from", "107", key="f")),
        seen=("5 records",),
        terminal_seen=("107", "111"),
    ),
    Task(
        asks="The messages since a time",
        kind=Kind.FINDING,
        start="browse/orders",
        page=(STARTS, Click("time", '[role=option]:has-text("time")'), Fill("At", "5h")),
        terminal=(Fill("from", "5h", key="f"),),
        seen=("={oldest}",),
    ),
    Task(
        asks="Messages by an expression over their value",
        kind=Kind.FINDING,
        start="browse/orders",
        page=(MORE, Fill("Expression (CEL)", "value.n == 7")),
        terminal=(Fill("cel", "value.n == 7", key="x", tabs=5),),
        seen=("order-7", "1 match"),
    ),
    Task(
        asks="A message by a header",
        kind=Kind.FINDING,
        start="browse/orders",
        page=(MORE, Fill("Header", "trace=t9")),
        terminal=(Fill("header", "trace=t9", key="x", tabs=2),),
        seen=("order-9", "1 match"),
    ),
    Task(
        asks="The partitions that lag",
        kind=Kind.FINDING,
        page=(Keys("g p"), Fill("filter", "lag>80", key="/")),
        terminal=(Keys("g p"), Fill("filter", "lag>80", key="/")),
        seen=("orders", "{lagging} of"),
    ),
    Task(
        asks="The groups that stand still",
        kind=Kind.FINDING,
        page=(Keys("g g"), Fill("filter", "status:stop", key="/")),
        terminal=(Keys("g g"), Fill("filter", "status:stop", key="/")),
        seen=("billing", "{stuck_groups} of"),
    ),
    Task(
        asks="The groups that are about to lose unread data",
        kind=Kind.FINDING,
        page=(Keys("g g"), Click("data loss in", '.ag-header-cell[col-id="loses"]')),
        terminal=(Keys("g g"), Keys("7")),
        seen=("data loss in",),
        first="hasty",
    ),
    Task(
        asks="A topic by a part of its name",
        kind=Kind.FINDING,
        page=(
            Fill("name", "Topic pay", key=":", at="#palette-query", enters=False),
            Click("payments", ".palette-entry:has-text('payments')"),
        ),
        terminal=(
            Fill("name", "Topic pay", key=":"),
            Keys("Enter"),
        ),
        seen=("payments", "high watermark"),
    ),
    Task(
        asks="Everything about a broker: what it leads, holds and takes",
        kind=Kind.FINDING,
        page=(Click("102", '#broker-table a[href="/brokers/102"]'),),
        terminal=(Keys("g b"), Keys("↓"), Keys("Enter")),
        seen=("broker 102", "={held_b}"),
    ),
    Task(
        asks="The topics that hold the most bytes",
        kind=Kind.FINDING,
        page=(Keys("g t"), Click("bytes", '.ag-header-cell[col-id="size_bytes"]')),
        terminal=(Keys("g t"), Keys("5")),
        seen=("bytes",),
        first="slow-",
    ),
    Task(
        asks="What would be offline if a broker died",
        kind=Kind.FINDING,
        page=(Click("102", '#broker-table a[href="/brokers/102"]'), Keys("w")),
        terminal=(Keys("g b"), Keys("↓"), Keys("w")),
        seen=("replicas out of reach", "={held_b}"),
    ),
    Task(
        asks="What would be offline if a rack died",
        kind=Kind.FINDING,
        page=(Keys("g w"), Click("loss", "#loss"), Click("rack a", "text=rack a")),
        terminal=(Keys("g w"), Keys("5")),
        seen=("replicas out of reach", "={held_a}"),
    ),
    Task(
        asks="The partition on which a key lands",
        kind=Kind.FINDING,
        start="browse/orders",
        page=(Keys("P"), Fill("Key", "order-42", enters=False)),
        terminal=(Keys("P"), Fill("Key", "order-42", enters=False)),
        seen=("murmur2 → 0 (leader",),
        leaves="Escape",
    ),
    Task(
        asks="The configs in which two topics differ",
        kind=Kind.FINDING,
        start="topics/orders",
        page=(Keys("V"), Fill("Compare with", "payments")),
        terminal=(Keys("V"), Fill("with", "payments", key="d")),
        seen=("604800000 (7 d)", "172800000 (2 d)"),
    ),
    Task(
        asks="A config by a word of its description",
        kind=Kind.FINDING,
        start="topics/orders",
        page=(Keys("V"), Fill("Filter", "force the log to roll", key="/")),
        terminal=(Keys("V"), Fill("filter", "force the log to roll", key="/")),
        seen=("segment.ms",),
        unseen=("cleanup.policy",),
    ),
    Task(
        asks="Leaders that are not the preferred ones",
        kind=Kind.FINDING,
        page=(Keys("g p"), Fill("filter", "status:not-preferred", key="/")),
        terminal=(Keys("g p"), Fill("filter", "status:not-preferred", key="/")),
        seen=(UNLED, "1 of"),
    ),
    Task(
        asks="Where lag gathers, over brokers and topics",
        kind=Kind.FINDING,
        page=(Keys("g m"), Click("lag", "#map-measure >> text=lag")),
        terminal=(Keys("g m"), Keys("5")),
        seen=("={lag_max}",),
    ),
    Task(
        asks="Under-replicated partitions",
        kind=Kind.FINDING,
        page=(Keys("g p"), Fill("filter", "status:under-replicated", key="/")),
        terminal=(Keys("g p"), Fill("filter", "status:under-replicated", key="/")),
        seen=("settled", "2/3 (−104)"),
    ),
)
