"""Textual's driver of a terminal, but only what changed is sent."""

from typing import Any

from textual.drivers.linux_driver import LinuxDriver

from tui.mirror import ScreenMirror


class SparingDriver(LinuxDriver):
    """Writes through a mirror of the screen."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._mirror = ScreenMirror()

    def write(self, data: str) -> None:
        """Send what differs from what the screen shows."""
        shorter = self._mirror.difference(data)
        if shorter:
            super().write(shorter)

    def forget(self) -> None:
        """Whatever the screen shows, the next picture is sent whole."""
        self._mirror.forget()
