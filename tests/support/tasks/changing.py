"""What operators change: topics, configs, groups, messages, replicas, reassignments."""

from typing import Final

from tests.support.tasks.task import Click, Fill, Keys, Kind, Task

PREVIEW: Final = Click("Preview")
YES: Final = Keys("y")

CHANGING: Final = (
    Task(
        asks="Create a topic",
        kind=Kind.CHANGING,
        start="topics",
        page=(Keys("n"), Fill("Name", "new-{face}"), Click("Create")),
        terminal=(Keys("n"), Fill("Name", "new-{face}"), YES),
        seen=("new-{face} is created",),
        terminal_seen=("new-{face}", "high watermark"),
    ),
    Task(
        asks="Create a topic like another one",
        kind=Kind.CHANGING,
        start="topics",
        page=(
            Keys("n"),
            Fill("Like topic", "orders", enters=False),
            Fill("Name", "like-{face}"),
            Click("Create"),
        ),
        terminal=(
            Keys("n"),
            Fill("Name", "like-{face}", enters=False),
            Fill("Like topic", "orders", tabs=3),
            YES,
        ),
        seen=("like-{face} is created: 6 partitions",),
        terminal_seen=("like-{face}", "high watermark"),
    ),
    Task(
        asks="Change a topic's retention",
        kind=Kind.CHANGING,
        start="topics/cfg-{face}",
        page=(Keys("C"), Fill("Configs", "retention.ms=7200000"), Click("Change")),
        terminal=(Keys("C"), Fill("Configs", "retention.ms=7200000"), YES),
        seen=("cfg-{face} is configured",),
        terminal_seen=("cfg-{face} is configured",),
    ),
    Task(
        asks="Set a config back to its default",
        kind=Kind.CHANGING,
        start="topics/cfg-{face}",
        page=(
            Keys("V"),
            Click("Reset", '[data-config="retention.ms"] button:has-text("Reset")'),
            PREVIEW,
            Click("Change"),
        ),
        terminal=(Keys("V"), Keys("Z"), Keys("Enter"), YES),
        seen=("cfg-{face} is configured",),
    ),
    Task(
        asks="Add partitions",
        kind=Kind.CHANGING,
        start="topics/grow-{face}",
        page=(
            Keys("a"),
            Fill("New number", "4"),
            Fill("Type grow-{face} to confirm", "grow-{face}"),
        ),
        terminal=(
            Keys("a"),
            Fill("New number", "4"),
            Fill("Type grow-{face} to confirm", "grow-{face}"),
        ),
        seen=("grow-{face} has 4 partitions",),
    ),
    Task(
        asks="Delete all records of a topic",
        kind=Kind.CHANGING,
        start="topics/purge-{face}",
        page=(
            Keys("K"),
            Fill("Before", "latest"),
            Fill("Type purge-{face} to confirm", "purge-{face}"),
        ),
        terminal=(
            Keys("K"),
            Fill("Before", "latest", tabs=1),
            Fill("Type purge-{face} to confirm", "purge-{face}"),
        ),
        seen=("records deleted in 2 partitions",),
    ),
    Task(
        asks="Delete a topic",
        kind=Kind.CHANGING,
        start="topics/old-{face}",
        page=(Keys("D"), PREVIEW, Fill("Type old-{face} to confirm", "old-{face}")),
        terminal=(Keys("D"), Keys("Enter"), Fill("Type old-{face} to confirm", "old-{face}")),
        seen=("old-{face} is deleted",),
    ),
    Task(
        asks="Send a message with a key",
        kind=Kind.CHANGING,
        start="topics/bulk-{face}",
        page=(Keys("P"), Fill("Key", "order-1", enters=False), Click("Send")),
        terminal=(Keys("P"), Fill("Key", "order-1")),
        seen=("bulk-{face}-",),
        terminal_seen=("✔ bulk-terminal-",),
        leaves="Escape",
    ),
)
