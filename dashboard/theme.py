"""Colours of the page: one meaning each, told apart by the colour-blind, in light and dark.

Hues are Okabe and Ito's. Mantine, the grid and the figures all take theirs from here; the style
sheet names the same through CSS variables.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from control.views.tables.rows import Tone

Scheme = Literal["light", "dark"]
SCHEMES: Final[tuple[Scheme, Scheme]] = ("light", "dark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """Every colour of one scheme."""

    text: str
    muted: str
    line: str
    surface: str
    leader: str
    follower: str
    mean: str
    band: str
    incoming: str
    outgoing: str
    tones: Mapping[Tone, str]
    lines: tuple[str, ...]
    heat: tuple[str, ...]
    """From little to much."""


LIGHT: Final = Palette(
    text="#1b2430",
    muted="#5d6b7c",
    line="#dfe5ec",
    surface="#ffffff",
    leader="#0072b2",
    follower="#9cc9e6",
    mean="#1b2430",
    band="rgba(0, 158, 115, 0.14)",
    incoming="#0072b2",
    outgoing="#d55e00",
    tones={
        Tone.CRITICAL: "#b3261e",
        Tone.WARNING: "#9a5b00",
        Tone.NOTICE: "#0061a0",
        Tone.FINE: "#00704f",
        Tone.PLAIN: "#1b2430",
        Tone.MUTED: "#5d6b7c",
    },
    lines=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
           "#7a4fa3", "#5d6b7c", "#8c6d1f", "#1f7a8c", "#a8324a", "#3b5b2c"),
    heat=("#d6e8f4", "#b4d7ed", "#86bfe0", "#3d93c6", "#0a629f", "#053a63"),
)  # fmt: skip

DARK: Final = Palette(
    text="#e8edf3",
    muted="#93a1b1",
    line="#2c3743",
    surface="#161d25",
    leader="#56b4e9",
    follower="#23516f",
    mean="#e8edf3",
    band="rgba(0, 190, 140, 0.16)",
    incoming="#56b4e9",
    outgoing="#f08c4a",
    tones={
        Tone.CRITICAL: "#ff8a80",
        Tone.WARNING: "#f2b84b",
        Tone.NOTICE: "#7cc4f2",
        Tone.FINE: "#4fd1a5",
        Tone.PLAIN: "#e8edf3",
        Tone.MUTED: "#93a1b1",
    },
    lines=("#56b4e9", "#f08c4a", "#4fd1a5", "#e0a1c6", "#f2c14e", "#a6d8f5",
           "#b79ae0", "#93a1b1", "#d0b25f", "#69c3d4", "#f08aa0", "#9ac17f"),
    heat=("#243f52", "#255273", "#2a6a94", "#3f95c8", "#7fc4ec", "#d6eefc"),
)  # fmt: skip

MANTINE_THEME: Final[dict[str, Any]] = {
    "colors": {
        # Mantine's own blue and red are too pale for small text; these pass WCAG AA on both
        # grounds. It takes shade 6 on light grounds and shade 8 on dark ones.
        "blue": [
            "#e8f2fa",
            "#cfe4f5",
            "#a6cdec",
            "#7cc4f2",
            "#3d93c6",
            "#0a72b5",
            "#0061a0",
            "#005690",
            "#0a5c94",
            "#053a63",
        ],
        "red": [
            "#fdecea",
            "#f9d3cf",
            "#f2aaa3",
            "#ff8a80",
            "#d9534a",
            "#c23a30",
            "#b3261e",
            "#9d1f18",
            "#a3261e",
            "#6d120d",
        ],
        # From text to ground; Mantine takes its dark inputs, borders and dialogs from these.
        "dark": [
            "#e8edf3",
            "#c3ccd6",
            "#93a1b1",
            "#6b7a8b",
            "#2c3743",
            "#222c37",
            "#1b242e",
            "#161d25",
            "#11171e",
            "#0e1319",
        ],
    },
    "primaryColor": "blue",
    "defaultRadius": "md",
    "fontFamily": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
    "fontFamilyMonospace": "ui-monospace, 'SF Mono', Menlo, Consolas, monospace",
    "headings": {"fontWeight": "650"},
}


def palette(scheme: str) -> Palette:
    """The colours of a scheme; anything but ``dark`` is light."""
    return DARK if scheme == "dark" else LIGHT
