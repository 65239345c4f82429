"""What stands on the terminal screen of an app under test."""

from typing import Any

from textual.app import App


def picture(app: App[Any]) -> str:
    """Its lines, as text."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())
