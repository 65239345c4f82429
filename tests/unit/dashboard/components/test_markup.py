"""What only shows is sent as markup; nothing of what operators name can become code."""

import dash_mantine_components as dmc
import pytest
from dash import dcc, html

from dashboard.components.markup import MARKUP, markup, still
from dashboard.components.parts import attributes, opener


def test_components_become_the_markup_that_they_stand_for() -> None:
    link = dcc.Link("orders", href="/topics/orders")
    row = html.Tr([html.Td(link), html.Td(7, className="number")], **attributes({"data-key": "a"}))

    assert markup([row, None]) == (
        '<tr data-key="a"><td><a href="/topics/orders">orders</a></td>'
        '<td class="number">7</td></tr>'
    )
    assert markup(dcc.Link("b", href="/b", refresh=True)) == (
        '<a href="/b" data-reloads="yes">b</a>'
    )


def test_a_box_within_a_box_is_drawn_with_it_and_an_opener_stays_one() -> None:
    inner = still(html.Table("rows"), className="frame")
    button = opener(html.Button, "drain", "drain_broker", {"broker": "1"}, about="x")

    assert markup([inner, button]) == (
        '<div class="frame"><table>rows</table></div>'
        '<span><button data-form="drain_broker" data-given="broker=1">drain</button></span>'
    )
    assert getattr(still([inner, "more"]), MARKUP) == f"{markup(inner)}more"


def test_names_stay_text_wherever_they_stand() -> None:
    evil = '"><script>alert(1)</script>&'
    drawn = getattr(still(html.Div(evil, title=evil)), MARKUP)

    assert "<script" not in drawn
    assert '="">' not in drawn
    assert drawn.count("&lt;script&gt;") == 2


def test_what_does_more_than_show_is_refused() -> None:
    with pytest.raises(TypeError, match="Button is more than markup"):
        markup(html.Div(dmc.Button("go")))
    with pytest.raises(TypeError, match="n_clicks is no attribute"):
        markup(html.Button("go", n_clicks=0))
