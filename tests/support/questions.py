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
        seen_in_terminal=("disk 97 % full", "1 partition at min ISR", "STOP on topic-2-", "since "),
    ),
    Question(
        ask="which broker is fullest, and when is it full?",
        seen=("103", "97 %", "full in", "≈ "),
    ),
    Question(
        ask="which group loses data first, and when?",
        clicks=("#nav-groups", '.ag-header-cell[col-id="loses"]'),
        seen=("data loss in", "group-1", "≈ 6 h"),
    ),
    Question(
        ask="what happens if rack b dies?",
        clicks=("#nav-what-if", "#loss", "text=rack b"),
        seen=("new leaders", "under min ISR", "replicas out of reach"),
        seen_in_terminal=("replicas out of reach", "new leaders", "under min ISR", "rack b"),
        keys=("g", "w", "5"),
    ),
    Question(
        ask="what happens if broker 102 dies?",
        clicks=('#broker-table a[href="/brokers/102"]', "text=What if it dies"),
        keys=("down", "w"),
        seen=("new leaders", "Extra load on survivors"),
        seen_in_terminal=("replicas out of reach", "new leaders", "SURVIVORS"),
    ),
    Question(
        ask="on which partition is a group stuck, since when, on which offset?",
        keys=("g", "f"),
        seen=("group-2", "STOP on topic-2-", "No commit since offset"),
    ),
    Question(
        ask="on which partitions does group-1 lag most?",
        clicks=('#group-table a[href="/groups/group-1"]',),
        seen=("2,000", "topic-1"),
        keys=("tab", "down", "enter"),
        seen_in_terminal=("READ BY group-1", "2,000", "consumer-0", "member"),
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
        keys=("g", "p", "3"),
        seen_in_terminal=("topic-0", "at-min-isr", "2/3 (−103)"),
    ),
    Question(
        ask="which leaders are not preferred, and how is that mended?",
        clicks=('.finding:has-text("not preferred") button',),
        keys=("g", "f"),
        seen=("Elect preferred leaders",),
        seen_in_terminal=("not preferred", "Elect the preferred leaders"),
    ),
    Question(
        ask="which topic holds the most bytes?",
        clicks=("#nav-topics", '.ag-header-cell[col-id="size_bytes"]'),
        keys=("g", "t", "5"),
        seen=("topic-3",),
        seen_in_terminal=("topic-3",),
    ),
    Question(
        ask="which partition takes the most traffic?",
        clicks=("#nav-partitions", '.ag-header-cell[col-id="in_bytes"]'),
        seen=("topic-3", "47.7 MiB/s"),
        seen_in_terminal=("topic-3", "47.7 MiB/s"),
        keys=("g", "p", "0"),
    ),
    Question(
        ask="how evenly do brokers lead?",
        clicks=("#broker-measure >> text=leaders",),
        seen=("mean 16", "band ±10 %"),
        seen_in_terminal=("leaders", "RACKS 3"),
    ),
    Question(
        ask="how evenly is it spread over racks?",
        seen=("Racks", "rack", "skew"),
        seen_in_terminal=("RACKS 3", "rack", "skew"),
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
        keys=("down", "down", "enter"),
        seen=("alive", "replicas", "leaders", "topic-0"),
    ),
    Question(
        ask="what would it take to empty broker 103?",
        clicks=('#broker-table a[href="/brokers/103"]', "text=Decommission it"),
        keys=("down", "down", "R"),
        seen=("Plan", "103"),
        seen_in_terminal=("REASSIGN", "103"),
    ),
    Question(
        ask="where do the replicas of topic-1-0 lie, and how many segments has it?",
        clicks=(
            '[row-id="topic-1"] [col-id="topic"]',
            '[row-id="topic-1-0"] [col-id="partition"]',
        ),
        start="topics",
        seen=("Replicas", "Segments of the leader", "in sync"),
        seen_in_terminal=("replicas", "segments", "in sync", "101"),
        keys=("down", "enter", "enter"),
    ),
    Question(
        ask="which broker carries what waits (lag)?",
        clicks=("#nav-map", "#map-measure >> text=lag"),
        keys=("g", "m", "5"),
        seen=("Broker × topic",),
        seen_in_terminal=("MAP", "lag", "topic × broker"),
    ),
    Question(
        ask="who changed what, when and why?",
        clicks=("#nav-journal",),
        keys=("g", "j"),
        seen=("Journal",),
        seen_in_terminal=("JOURNAL", "104 has joined"),
    ),
    Question(
        ask="which reassignments run, and which ran?",
        clicks=("#nav-moves",),
        keys=("g", "r"),
        seen=("Moves",),
        seen_in_terminal=("MOVES", "mv-3f9a21c4"),
    ),
    Question(
        ask="how was it a minute ago?",
        clicks=("#time-button", "text=1 minute ago"),
        keys=("@", "enter"),
        seen=("you are looking at",),
        seen_in_terminal=("you are looking at",),
    ),
    Question(
        ask="on which partition will a key land?",
        clicks=("#nav-produce",),
        keys=("P",),
        seen=("keys land",),
        seen_in_terminal=("PRODUCE", "murmur2"),
    ),
)
