"""What operators ask, where they find it, and how far it is: one table for page and terminal.

Every question starts at ``start`` (mostly the overview). ``clicks`` are what is clicked on the
page, one after another, as selectors of playwright; ``keys`` what is pressed in the terminal.
None takes more than ``STEPS_MAX``. What answers stands in ``seen`` (``seen_in_terminal`` where the
terminal says it in other words). The cluster is that of ``question_store``.
"""

from dataclasses import dataclass
from typing import Final

STEPS_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question, and the way to its answer on both faces."""

    ask: str
    clicks: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    seen: tuple[str, ...]
    seen_in_terminal: tuple[str, ...] | None = None
    start: str = "overview"


QUESTIONS: Final = (
    Question(
        ask="is anything wrong, where, and since when?",
        seen=("disk 97 % full", "under-replicated", "STOP on topic-2-", "since "),
    ),
    Question(
        ask="which broker is fullest, and when is it full?",
        seen=("103", "97 %", "full in", "≈ "),
    ),
    Question(
        ask="which group loses data first, and when?",
        clicks=("#nav-groups", '.ag-header-cell[col-id="loses"]'),
        seen=("loses data in", "group-1", "≈ 6 h"),
    ),
    Question(
        ask="what happens if rack b dies?",
        clicks=("#nav-what-if", "#loss", "text=rack b"),
        seen=("new leaders", "under min ISR", "replicas out of reach"),
    ),
    Question(
        ask="what happens if broker 102 dies?",
        clicks=('#broker-table a[href="/brokers/102"]', "text=What if it dies"),
        seen=("new leaders", "Who bears it"),
    ),
    Question(
        ask="on which partition is a group stuck, since when, on which offset?",
        seen=("group-2", "STOP on topic-2-", "No commit since offset"),
    ),
    Question(
        ask="on which partitions does group-1 lag most, and who owns them?",
        clicks=('#group-table a[href="/groups/group-1"]',),
        seen=("2,000", "consumer-0", "member"),
    ),
    Question(
        ask="when has group-1 caught up?",
        clicks=('#group-table a[href="/groups/group-1"]',),
        seen=("clears in", "never"),
    ),
    Question(
        ask="which partition lacks a replica, and which one?",
        clicks=('.finding a.finding-subject:has-text("topic-0-0")',),
        seen=("2/3 (−103)", "out of sync"),
    ),
    Question(
        ask="which leaders are not preferred, and how is that mended?",
        clicks=('.finding:has-text("not preferred") button',),
        seen=("Elect preferred leaders",),
    ),
    Question(
        ask="which topic holds the most bytes?",
        clicks=(
            "#nav-topics",
            '.ag-header-cell[col-id="size_bytes"]',
            '.ag-header-cell[col-id="size_bytes"]',
        ),
        seen=("topic-3",),
    ),
    Question(
        ask="which partition takes the most traffic?",
        clicks=(
            "#nav-partitions",
            '.ag-header-cell[col-id="in_bytes"]',
            '.ag-header-cell[col-id="in_bytes"]',
        ),
        seen=("topic-3", "47.7 MiB/s"),
    ),
    Question(
        ask="how evenly do brokers lead?",
        clicks=("#broker-measure >> text=leaders",),
        seen=("mean 16", "band ±10 %"),
    ),
    Question(
        ask="how evenly is it spread over racks?",
        seen=("Racks", "rack", "skew"),
    ),
    Question(
        ask="how old are these figures, and does the metrics job keep up?",
        seen=(" ago", "job "),
    ),
    Question(
        ask="who is the controller, and are all brokers there?",
        seen=("controller 101", "3/3 brokers"),
    ),
    Question(
        ask="what does broker 103 carry?",
        clicks=('#broker-table a[href="/brokers/103"]',),
        seen=("alive", "replicas", "leaders", "topic-0"),
    ),
    Question(
        ask="what would it take to empty broker 103?",
        clicks=('#broker-table a[href="/brokers/103"]', "text=Empty it"),
        seen=("Plan", "103"),
    ),
    Question(
        ask="where do the replicas of topic-1-0 lie, and how many segments has it?",
        clicks=(
            "#nav-topics",
            '.ag-pinned-left-cols-container [row-id="topic-1"] .ag-cell',
            '.ag-pinned-left-cols-container [row-id="topic-1-0"] .ag-cell',
        ),
        seen=("Replicas", "Segments of the leader", "in sync"),
    ),
    Question(
        ask="which broker carries what waits (lag)?",
        clicks=("#nav-map", "#map-measure >> text=lag"),
        seen=("Broker × topic",),
    ),
    Question(
        ask="who changed what, when and why?",
        clicks=("#nav-journal",),
        seen=("Journal",),
    ),
    Question(
        ask="which reassignments run, and which ran?",
        clicks=("#nav-moves",),
        seen=("Moves",),
    ),
    Question(
        ask="how was it a minute ago?",
        clicks=("#time-button", "text=1 minute ago"),
        seen=("you are looking at",),
    ),
    Question(
        ask="on which partition will a key land?",
        clicks=("#nav-produce",),
        seen=("a key lands",),
    ),
)
