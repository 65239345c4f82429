"""Makes the report of a move from its state and from the store."""

from control.move.state import OperationState
from control.operations.errors import InvalidInputError
from control.views.move_report.group_lag import read_group_lags, spans_of
from control.views.move_report.report import MoveReport, report_of
from control.views.snapshots.store import StoreReader, StoreUnreadableError


def read_report(state: OperationState, reader: StoreReader | None, *, cluster: str) -> MoveReport:
    """The report of a move that has ended; it reads files. ``cluster`` is the id in the store,
    where the move tells none. ``reader`` None: there is no store here.

    :raises InvalidInputError: the move still runs.
    """
    if not state.is_finished:
        words = f"{state.operation_id} still runs; its report is written when it has ended"
        raise InvalidInputError({"id": words})
    if reader is None:
        return report_of(state, None, groups_missing="there is no store of metrics here")
    if state.started_ms is None or state.finished_ms is None:
        return report_of(state, None, groups_missing="the move never began")
    if not state.changes:
        return report_of(state, None, groups_missing="the plan is not kept")
    spans = spans_of(state.started_ms, state.finished_ms)
    moved = [change.key for change in state.changes]
    try:
        groups = read_group_lags(reader, state.cluster_id or cluster, moved, spans)
    except StoreUnreadableError as error:
        return report_of(state, None, groups_missing=f"the store cannot be read: {error}")
    return report_of(state, groups, groups_missing="no history is kept of that time")
