"""``c``: which cluster? Each with its colour and what nobody may overlook."""

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from control.model.watched_cluster import WatchedCluster

HINT: Final = "Cluster: Enter goes there on the same view · Esc stays · g c compares them"


class ClustersScreen(ModalScreen[str | None]):
    """A list; Enter takes one, Esc stays."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "stay")]

    def __init__(self, clusters: Sequence[WatchedCluster]) -> None:
        super().__init__()
        self._clusters = clusters

    def compose(self) -> ComposeResult:
        """The clusters, the one that is shown first."""
        with Vertical(id="confirm"):
            yield Static(HINT)
            yield OptionList(*(Option(_line(each), id=each.name) for each in self._clusters))

    def on_mount(self) -> None:
        """The next one is at hand."""
        self.query_one(OptionList).highlighted = min(1, len(self._clusters) - 1)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """That one."""
        event.stop()
        self.dismiss(event.option.id)


def _line(cluster: WatchedCluster) -> Text:
    return Text.assemble(
        ("● ", cluster.hex_color or ""), (cluster.name, "bold"), "  ", ", ".join(cluster.flags)
    )
