"""The application as its screens see it; they import it by this alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from control.views.snapshots.snapshot import OperatorSnapshot
from tui.charts import Stretch
from tui.services import Services

if TYPE_CHECKING:  # a Kafka client comes with it
    from control.operations.session import OperationSession


class AppContext(Protocol):
    """``tui.app.PartiscopeApp``."""

    is_paused: bool
    at_ms: int | None
    """The past moment that is shown; None: now."""
    stretch: Stretch
    """How much of the past charts show."""
    services: Services
    """Of the cluster that is shown."""

    @property
    def snapshot(self) -> OperatorSnapshot:
        """The shown snapshot: now, a past moment, or the moment of the pause."""

    @property
    def session(self) -> OperationSession:
        """The session that acts on the cluster."""

    @property
    def every_services(self) -> tuple[Services, ...]:
        """Services of all clusters, in the order in which they are watched."""

    def action_open(self, path: str) -> None:
        """Show the view of a path."""

    def open_form(self, name: str, given: Mapping[str, str]) -> None:
        """The dialog of an operation, filled in."""

    async def action_back(self) -> None:
        """One level back."""
