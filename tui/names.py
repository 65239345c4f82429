"""Shortens names that others chose to the room that a terminal has."""

from rich.cells import cell_len, set_cell_size


def cut_middle(text: str, width: int) -> str:
    """Begin and end of a longer text: names often differ in what they end with.

    >>> cut_middle("prod.orders.payment-events.v2", 20)
    'prod.orders.…ents.v2'
    """
    if cell_len(text) <= width:
        return text
    tail = ""
    while tail != text and cell_len(text[-len(tail) - 1 :]) <= (width - 1) * 2 // 5:
        tail = text[-len(tail) - 1 :]
    return f"{set_cell_size(text, width - 1 - cell_len(tail)).rstrip()}…{tail}"
