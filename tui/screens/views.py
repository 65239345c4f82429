"""Which screen shows which view."""

from typing import Final

from control.views.paths import ViewPath
from tui.screens.base import ViewScreen
from tui.screens.browse import BrowseScreen
from tui.screens.findings import FindingsScreen
from tui.screens.group import GroupScreen
from tui.screens.journal import JournalScreen
from tui.screens.map import MapScreen
from tui.screens.moves import MoveScreen, MovesScreen
from tui.screens.overview import OverviewScreen
from tui.screens.partition import PartitionScreen
from tui.screens.plan import PlanScreen
from tui.screens.produce import ProduceScreen
from tui.screens.tables import BrokerScreen, TableScreen, TopicScreen
from tui.screens.what_if import WhatIfScreen

SCREENS: Final[dict[str, type[ViewScreen]]] = {
    "overview": OverviewScreen,
    "findings": FindingsScreen,
    "brokers": TableScreen,
    "broker": BrokerScreen,
    "topics": TableScreen,
    "topic": TopicScreen,
    "partitions": TableScreen,
    "partition": PartitionScreen,
    "segments": PartitionScreen,
    "groups": TableScreen,
    "group": GroupScreen,
    "plan": PlanScreen,
    "moves": MovesScreen,
    "move": MoveScreen,
    "map": MapScreen,
    "what-if": WhatIfScreen,
    "journal": JournalScreen,
    "browse": BrowseScreen,
    "produce": ProduceScreen,
    "produce_any": ProduceScreen,
}


def build_screen(path: ViewPath) -> ViewScreen:
    """The screen of a view; the overview for one that the terminal does not have."""
    return SCREENS.get(path.view, OverviewScreen)(path)
