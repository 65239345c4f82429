"""A plan on the map, now and planned side by side; back leads to the plan."""

from typing import Any

from dash import Dash, Input, Output, dcc, html

from control.views import format as text
from control.views.paths import ViewPath
from control.views.plan_map import MEASURES, form_path, map_path, plan_map, plan_path
from dashboard import ids
from dashboard.components.heat_box import plan_boxes
from dashboard.components.parts import card, crumbs, empty
from dashboard.context import PageContext
from planner.planned_map import KeptPlan


def layout(context: PageContext, path: ViewPath) -> list[Any]:
    """Layout of the map for the plan that the path names."""
    name = path.query["plan"]
    kept = find_plan(context, name)
    if kept is None:
        form = f"/{form_path(path)}"
        return [
            crumbs([("Plan", form.removeprefix("/")), ("On the map", "")]),
            empty("This plan is gone", "Plan again: the cluster may have changed"),
            dcc.Link("← plan again, with its form", href=form, id=ids.PLAN_MAP_BACK),
        ]
    found = plan_map(kept, path.query.get("measure", ""))
    ways = [
        dcc.Link(
            words,
            href=f"/{map_path(name, measure, kept.values)}",
            className="way chosen" if measure == found.measure else "way",
        )
        for measure, words in MEASURES.items()
    ]
    proposal = kept.alternative.proposal
    words = (
        f"{kept.alternative.name}: {text.plural_text(len(proposal.changes), 'change')}, "
        f"{text.bytes_text(proposal.moved_bytes)} to copy"
    )
    if found.topics_left_out:
        words += f"; {text.plural_text(found.topics_left_out, 'topic')} that move less are left out"
    back = dcc.Link("← back to the plan", href=f"/{plan_path(kept)}", id=ids.PLAN_MAP_BACK)
    return [
        crumbs([("Plan", str(plan_path(kept))), ("On the map", "")]),
        html.Div([back, *ways], className="actions"),
        html.P(words, className="note"),
        dcc.Store(id=ids.PLAN_MAP_SHOWN, data={"plan": name, "measure": found.measure}),
        html.Div(
            [
                _place("Now", ids.PLAN_MAP_NOW),
                _place("Planned: ▲ grows, ▼ shrinks", ids.PLAN_MAP_PLANNED),
            ],
            className="compare",
        ),
    ]


def _place(title: str, place: str) -> html.Section:
    return card(title, html.Div(id=place, className="heat-place"), class_name="tall")


def find_plan(context: PageContext, name: str) -> KeptPlan | None:
    """A plan that was made on this page or another one lately."""
    if context.watched.bootstrap is None:
        return None
    return context.actions.session.plans.find(name)


def register(app: Dash, context: PageContext) -> None:
    """Draw both in the page's colours."""

    @app.callback(
        Output(ids.PLAN_MAP_NOW, "children"),
        Output(ids.PLAN_MAP_PLANNED, "children"),
        Input(ids.PLAN_MAP_SHOWN, "data"),
        Input(ids.SCHEME, "data"),
        websocket=True,
    )
    def draw(shown: dict[str, str], scheme: str | None) -> tuple[Any, Any]:
        kept = find_plan(context, shown["plan"])
        if kept is None:
            return None, None
        return plan_boxes(plan_map(kept, shown["measure"]), scheme or "light")
