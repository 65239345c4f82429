"""Tables as one component: the page's framework sees a box, the browser draws what is in it.

Dash asks every component of a page at every change of anything whether it is concerned; a table of
24 brokers alone has 300. And it throws away what a callback answers anew, so that the press and the
release of a click meet different nodes. What only shows, links and opens forms is therefore sent
as markup in an attribute of a box that stays (a callback's output is ``Output(box, MARKUP)``). The
browser (``assets/modules/markup.js``) draws it in place: nodes that stay keep focus and selection.
"""

from collections.abc import Mapping
from html import escape
from typing import Any, Final

from dash import dcc, html

from dashboard.components.parts import attributes

MARKUP: Final = "data-markup"
RELOADS: Final = "data-reloads"
_NAMES: Final = {"className": "class", "colSpan": "colspan"}
_PLAIN: Final = ("title", "href", "id", "role", "src", "alt")
_VOID: Final = {"img"}


def still(component: Any, **props: Any) -> html.Div:
    """A box with what is drawn in it: a component, or several."""
    return markup_box(markup(component), **props)


def markup_box(within: str, **props: Any) -> html.Div:
    """A box with this markup in it, which callbacks may draw anew."""
    return html.Div(**attributes({MARKUP: within}), **props)


def markup(component: Any) -> str:
    """HTML of components that only show and link; all text and every value is escaped.

    Raises:
        TypeError: a component that does more.
    """
    if component is None:
        return ""
    if isinstance(component, str | int | float):
        return escape(str(component))
    if isinstance(component, list | tuple):
        return "".join(map(markup, component))
    is_link = isinstance(component, dcc.Link)
    if not is_link and not type(component).__module__.startswith(f"{html.__name__}."):
        raise TypeError(f"{type(component).__name__} is more than markup")
    tag = "a" if is_link else type(component).__name__.lower()
    props = component.to_plotly_json()["props"]
    opening = f"<{tag}{_attributes(props)}>"
    within = props.get(MARKUP) or markup(props.get("children"))
    return opening if tag in _VOID else f"{opening}{within}</{tag}>"


def _attributes(props: Mapping[str, Any]) -> str:
    known = {}
    for name, value in props.items():
        if name == MARKUP or (name == "id" and isinstance(value, dict)):
            continue  # what is drawn within; a name that only Dash knows
        if name in _NAMES or name in _PLAIN or name.startswith(("data-", "aria-")):
            known[_NAMES.get(name, name)] = value
        elif name == "style":
            known[name] = ";".join(f"{key}:{it}" for key, it in value.items())
        elif name == "refresh":
            known |= {RELOADS: "yes"} if value else {}
        elif name != "children":
            raise TypeError(f"{name} is no attribute of markup")
    shown = [(name, value) for name, value in known.items() if value is not None]
    shown.sort(key=_place)  # Dash has them in another order in each process.
    return "".join(f' {name}="{escape(str(value))}"' for name, value in shown)


def _place(attribute: tuple[str, Any]) -> str:
    name, _ = attribute
    return name if name.startswith(("data-", "aria-")) else ""
