"""Asks the planner about a case. No oracle: what is judged begins here."""

from planner.goals import Goal, GoalError, PlanRequest
from planner.optimizer import Plan, plan
from planner.topology import parse_topology
from tests.oracle.planner.cases import Case


def planned(case: Case) -> Plan | None:
    """None: refused with a reason."""
    request = case.request | {"goal": Goal(case.request["goal"])}
    try:
        return plan(parse_topology(case.topology).in_order(), PlanRequest(**request))
    except GoalError:
        return None
