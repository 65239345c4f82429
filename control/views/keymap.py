"""Places and keys, the same on both screens.

The key of an operation is the ``FORM.key`` of its class in control/operations/catalogue.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A view that ``g`` and ``key`` go to; ``path`` is its view path."""

    key: str
    path: str
    title: str
    help: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHelp:
    """One line of the help: where a key works, the key, what it does."""

    where: str
    key: str
    does: str


PLACES: Final = (
    Place(key="o", path="overview", title="Overview", help="is anything wrong, where, what now"),
    Place(key="f", path="findings", title="Findings", help="all that is wrong, worst first"),
    Place(key="a", path="alerts", title="Alerts", help="what rang, who was told, silences"),
    Place(key="t", path="topics", title="Topics", help="sizes, rates, replication factors"),
    Place(key="p", path="partitions", title="Partitions", help="leaders, ISR, sizes, lag"),
    Place(key="b", path="brokers", title="Brokers", help="what each carries, skew, disks"),
    Place(key="g", path="groups", title="Groups", help="status, lag, time to clear"),
    Place(key="m", path="map", title="Map", help="broker × topic on one picture"),
    Place(key="w", path="what-if", title="What if", help="what a lost broker or rack would do"),
    Place(key="n", path="plan", title="Plan", help="move replicas: plan, review, run"),
    Place(key="r", path="moves", title="Moves", help="running and past reassignments"),
    Place(key="j", path="journal", title="Journal", help="who changed what, when and why"),
    Place(key="c", path="clusters", title="Clusters", help="all that are watched, side by side"),
    Place(key="h", path="job", title="Metrics job", help="batch time, delay, what it missed"),
)

KEYS: Final = (
    KeyHelp(where="anywhere", key="Esc", does="one level back; a filter typed here first"),
    KeyHelp(where="anywhere", key="Space", does="pause, resume"),
    KeyHelp(where="anywhere", key=": or ctrl+p", does="palette: go anywhere, do anything"),
    KeyHelp(where="anywhere", key="@", does="look at another time"),
    KeyHelp(where="anywhere", key="c", does="another cluster, where several are watched"),
    KeyHelp(where="anywhere", key="w", does="what if the broker here dies"),
    KeyHelp(where="anywhere", key="y", does="copy the link of this view"),
    KeyHelp(where="anywhere", key="?", does="this help"),
    KeyHelp(where="a table", key="/", does="filter: lag>10000 broker:102 status:under-replicated"),
    KeyHelp(where="a filter", key="Esc", does="keep it; the keys are the table's again"),
    KeyHelp(where="a table", key="s", does="sort"),
    KeyHelp(where="a table", key="l", does="choose its columns"),
    KeyHelp(where="a table", key="↑ ↓", does="move"),
    KeyHelp(where="a table", key="Enter", does="open the row"),
    KeyHelp(where="a table", key="e", does="export what the filter leaves, as CSV"),
    KeyHelp(where="a table", key="J", does="the same as JSON"),
    KeyHelp(where="topics, groups", key="m", does="mark the row: operations act on all marked"),
    KeyHelp(where="topics, groups", key="*", does="mark all that the filter shows"),
    KeyHelp(where="topics, groups", key="H", does="show or hide internal ones"),
    KeyHelp(where="topic, partition", key="v", does="browse its messages"),
    KeyHelp(where="a topic", key="V", does="its configs; on a broker, those of the broker"),
    KeyHelp(where="a move", key="x", does="cancel"),
    KeyHelp(where="a move", key="X", does="cancel after its wave: what moves arrives"),
    KeyHelp(where="a move", key="u", does="roll back"),
    KeyHelp(where="a move", key="o", does="its report, once it has ended"),
)
