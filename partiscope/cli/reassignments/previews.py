"""A move before it is asked for: brokers now, during and after; what travels; pre-flight."""

from control.operations.catalogue.moves.roll_back import RollBack
from control.operations.catalogue.operation import Effect, Operation
from control.operations.reassignment.planning import Preview
from control.views.format import bytes_text, plural_text
from control.views.plans import PLAN_BROKERS
from control.views.previews import reassignment_document
from partiscope.cli.shared.options import write_json, write_lines
from partiscope.cli.shared.tables import check_line, write_rows


def show_preview(preview: Preview) -> None:
    """All of it, on stdout."""
    write_rows(PLAN_BROKERS.columns, PLAN_BROKERS.rows(preview.brokers))
    proposal = preview.proposal
    write_lines(
        f"to move: {plural_text(proposal.moved_replicas, 'replica')}, "
        f"{bytes_text(proposal.moved_bytes)}, "
        f"{plural_text(proposal.moved_leaders, 'new leader')}; {preview.pace_words}",
        *map(check_line, preview.checks),
    )


def show_rollback(effect: Effect[Operation], *, as_json: bool) -> None:
    """Prints what a rollback would do."""
    command, review = effect.command, effect.review
    assert isinstance(command, RollBack)
    assert command.way is not None
    assert review is not None
    if not as_json:
        write_lines(effect.lines[0])
        show_preview(review)
        return
    rolled_back = {"rollback_of": command.move, "is_cancelled_first": command.way.is_running}
    write_json({**rolled_back, **reassignment_document(review)})
