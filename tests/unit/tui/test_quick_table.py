"""What the quick table paints is what Textual's own table paints."""

import pytest
from rich.text import Text
from textual.app import App, ComposeResult
from textual.widgets import DataTable

from tui.terminal.quick_table import QuickTable

ROWS = (
    (Text("orders", style="bold red"), Text("12.5 KiB/s", justify="right", no_wrap=True)),
    (Text("注文 ◆", style="dim", justify="left", no_wrap=True), Text("", justify="right")),
    (Text.assemble(("one", "green"), " two"), Text("a line\nand another", justify="left")),
    (Text("too long for its column", justify="left"), Text("1", style="bold", justify="right")),
)


class _Tables(App[None]):
    def __init__(self, table: DataTable[Text]) -> None:
        super().__init__()
        self.table = table

    def compose(self) -> ComposeResult:
        yield self.table

    def on_mount(self) -> None:
        self.table.add_columns("topic", Text("in/s", justify="right"))
        for row in ROWS:
            self.table.add_row(*row)


async def _painted(table: DataTable[Text], width: int) -> list[list[tuple[str, str]]]:
    """Text and style of every segment, line by line."""
    app = _Tables(table)
    async with app.run_test(size=(width, 8)) as pilot:
        await pilot.press("down")
        await pilot.pause()
        return [[(it.text, str(it.style)) for it in strip] for strip in table.render_lines(
            table.size.region
        )]  # fmt: skip


@pytest.mark.parametrize("width", [12, 60])
async def test_it_paints_what_textual_paints(width: int) -> None:
    own = await _painted(QuickTable(id="table", cursor_type="row"), width)
    textual: DataTable[Text] = DataTable(cursor_type="row", cell_padding=1, id="table")
    assert own == await _painted(textual, width)
    assert any("orders" in text for line in own for text, _ in line)
