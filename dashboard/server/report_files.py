"""The report of a move as a file: ``/report/mv-3f9a21c4.html``."""

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, Response

from control.operations.errors import OperationError
from control.views.move_report.documents import WRITERS
from control.views.move_report.reading import read_report
from dashboard.context import PageContext


def register(server: FastAPI, context: PageContext) -> None:
    """One route for all kinds of file."""

    @server.get("/report/{move}.{kind}", include_in_schema=False)
    def answer(move: str, kind: str) -> Response:
        state, writer = context.actions.moves.get(move), WRITERS.get(kind)
        if writer is None:
            known = ", ".join(WRITERS)
            return PlainTextResponse(f"404: no report as {kind!r}; there are {known}\n", 404)
        if state is None:
            return PlainTextResponse("404: no move of this name is known\n", 404)
        try:
            report = read_report(state, context.reader, cluster=context.cluster)
        except OperationError as error:
            return PlainTextResponse(f"409: {error}\n", 409)
        return Response(writer.write(report), media_type=writer.media_type)
