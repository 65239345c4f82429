"""From a problem to what mends it: where a finding's next step leads, the same on both screens."""

from dataclasses import dataclass
from shlex import quote
from typing import Final

from control.model.finding import Operation
from control.views.paths import PathError, ViewPath, parse_path
from control.views.tables.findings import FindingRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A next step: a view path, or a form of the catalogue by name with ``given`` values of its
    fields (``form`` empty: the path). Both are empty where the step is not taken here."""

    path: str
    form: str = ""
    given: tuple[tuple[str, str], ...] = ()


_FORMS: Final = ("elect", "clear_throttles", "reset_offsets", "silence")
"""Operations that have a form of their own."""
_DISKS: Final = ("disk", "log-dir-full", "disk-filling")
_GOALS: Final = {"skew-leaders": "leaders", **dict.fromkeys(_DISKS, "relieve")}
"""Goal of the plan that mends a kind of finding, where it is not ``balance``."""


def action_of(row: FindingRow) -> Action:
    """``reassign`` opens the plan with goal and scope filled in; some others their own form;
    everything else the view that the step names, else the subject."""
    operation = row.operation.text
    kind = row.key.partition(" ")[0]
    if operation in _FORMS:
        return Action(path=row.path, form=operation, given=row.given)
    if operation == "outside":
        return Action(path="")
    if operation == Operation.REASSIGN:
        query = {
            "goal": _GOALS.get(kind, "balance"),
            **dict(row.given),
            **_scope(kind, row.path),
            "reason": _reason(row),
        }
        return Action(path=str(ViewPath(view="plan", query=query)))
    return Action(path=row.step or row.path)


def plan_values(row: FindingRow) -> dict[str, str]:
    """Fields of the plan that a finding leads to, without its reason; empty: it leads to none."""
    if row.operation.text != Operation.REASSIGN:
        return {}
    query = parse_path(action_of(row).path).query
    return {name: value for name, value in query.items() if name != "reason"}


def plan_command(row: FindingRow) -> str:
    """The command that shows that plan, in backquotes; empty: it leads to none."""
    given = (f"--{name.replace('_', '-')} {quote(it)}" for name, it in plan_values(row).items())
    flags = " ".join(given)
    return f"`partiscope plan {flags}`" if flags else ""


def _scope(kind: str, path: str) -> dict[str, str]:
    """A finding about one topic or partition is planned for that topic alone; a full disk is
    relieved."""
    try:
        about = parse_path(path).params
    except PathError:
        return {}
    if kind in _DISKS and "broker" in about:
        return {"relieve_brokers": about["broker"]}
    return {"topics": about["topic"]} if "topic" in about else {}


def _reason(row: FindingRow) -> str:
    return f"{row.label.text}: {row.title.text}"
