"""Which screen shows which view; each is loaded when it is first opened.

What plans, produces or browses brings a Kafka client along, which the overview does without.
"""

from importlib import import_module
from typing import Final

from control.views.paths import ViewPath
from tui.screens.base import ViewScreen
from tui.session import TerminalSession

SCREENS: Final = {
    "overview": "overview:OverviewScreen",
    "findings": "findings:FindingsScreen",
    "clusters": "all_clusters:AllClustersScreen",
    "brokers": "brokers:BrokersScreen",
    "broker": "detail:BrokerScreen",
    "broker_configs": "configs:ConfigsScreen",
    "topics": "tables:TableScreen",
    "topic": "detail:TopicScreen",
    "topic_configs": "configs:ConfigsScreen",
    "partitions": "tables:TableScreen",
    "partition": "partition:PartitionScreen",
    "segments": "partition:PartitionScreen",
    "groups": "tables:TableScreen",
    "group": "detail:GroupScreen",
    "plan": "plan:PlanScreen",
    "check": "check:CheckScreen",
    "moves": "moves:MovesScreen",
    "move": "moves:MoveScreen",
    "map": "map:MapScreen",
    "map by partitions": "cells:CellsScreen",
    "map of a plan": "plan_map:PlanMapScreen",
    "what-if": "what_if:WhatIfScreen",
    "journal": "journal:JournalScreen",
    "job": "job:JobScreen",
    "browse": "browse:BrowseScreen",
    "produce": "produce:ProduceScreen",
    "produce_any": "produce:ProduceScreen",
}
"""View (and what it is cut by) -> module of this folder, and its class."""


def build_screen(path: ViewPath, session: TerminalSession) -> ViewScreen:
    """The screen of a view; the overview for one that the terminal does not have."""
    by = "of a plan" if path.query.get("plan") else f"by {path.query.get('by', '')}"
    view = f"{path.view} {by}" if f"{path.view} {by}" in SCREENS else path.view
    module, _, name = SCREENS.get(view, SCREENS["overview"]).partition(":")
    screen: ViewScreen = getattr(import_module(f"tui.screens.{module}"), name)(path, session)
    return screen
