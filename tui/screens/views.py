"""Which screen shows which view; each is loaded when it is first opened.

What plans, produces or browses brings a Kafka client along, which the overview does without.
"""

from importlib import import_module
from typing import Final

from control.views.paths import ViewPath
from tui.screens.base import ViewScreen
from tui.terminal_session import TerminalSession

SCREENS: Final = {
    "overview": "details.overview:OverviewScreen",
    "findings": "lists.findings:FindingsScreen",
    "alerts": "lists.alerts:AlertsScreen",
    "clusters": "lists.all_clusters:AllClustersScreen",
    "brokers": "lists.brokers:BrokersScreen",
    "broker": "details.detail:BrokerScreen",
    "broker_configs": "lists.configs:ConfigsScreen",
    "topics": "lists.marked:TopicsScreen",
    "topic": "details.detail:TopicScreen",
    "topic_configs": "lists.configs:ConfigsScreen",
    "partitions": "lists.table_screen:TableScreen",
    "partition": "details.partition:PartitionScreen",
    "segments": "details.partition:PartitionScreen",
    "groups": "lists.marked:GroupsScreen",
    "group": "details.detail:GroupScreen",
    "plan": "reassignments.plan:PlanScreen",
    "check": "reassignments.check:CheckScreen",
    "moves": "reassignments.moves:MovesScreen",
    "move": "reassignments.moves:MoveScreen",
    "move_report": "reassignments.move_report:MoveReportScreen",
    "map": "maps.map:MapScreen",
    "map by partitions": "maps.partition_map:CellsScreen",
    "map of a plan": "reassignments.plan_map:PlanMapScreen",
    "what-if": "details.what_if:WhatIfScreen",
    "journal": "lists.journal:JournalScreen",
    "job": "details.job:JobScreen",
    "browse": "messages.browse:BrowseScreen",
    "produce": "messages.produce:ProduceScreen",
    "produce_any": "messages.produce:ProduceScreen",
}
"""View (and what it is cut by) -> module of this folder, and its class."""


def build_screen(path: ViewPath, session: TerminalSession) -> ViewScreen:
    """The screen of a view; the overview for one that the terminal does not have."""
    by = "of a plan" if path.query.get("plan") else f"by {path.query.get('by', '')}"
    view = f"{path.view} {by}" if f"{path.view} {by}" in SCREENS else path.view
    module, _, name = SCREENS.get(view, SCREENS["overview"]).partition(":")
    screen: ViewScreen = getattr(import_module(f"tui.screens.{module}"), name)(path, session)
    return screen
