"""DeleteAcls, versions 1-3.

Behaviour: executed by the active controller; each filter is answered with what it deleted. Without
an authorizer SECURITY_DISABLED.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.controller_channel import ControllerRequest
from broker.controller.decision import Accepted, Verdict
from broker.controller.security.acl_control import DeletedAcls, decide_delete_acls
from broker.handlers.acl_requests import NO_AUTHORIZER, entry_fields, read_filter
from broker.handlers.controller_apis import controller_api, verdict_fields
from broker.metadata.acls import Acl, Operation
from broker.protocol import codec

API_KEY: Final = 31


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    refused = {"error_code": error, "error_message": reason, "matching_acls": []}
    return codec.build_response(API_KEY, version, filter_results=[refused for _ in message.filters])


@controller_api(API_KEY, versions=(1, 3), refuse=_refuse, cluster_operation=Operation.ALTER)
async def execute_delete_acls(active: ActiveController, request: ControllerRequest) -> Any:
    """Delete entries as the active controller."""
    message, version = request.message, request.api_version
    if not active.authorization.is_enabled:
        return _refuse(version, message, ErrorCode.security_disabled, NO_AUTHORIZER)
    filters = [read_filter(it) for it in message.filters]
    verdicts = await active.run(lambda image: decide_delete_acls(filters, image))
    results = [{**verdict_fields(it), "matching_acls": _deleted(it)} for it in verdicts]
    return codec.build_response(API_KEY, version, filter_results=results)


def _deleted(verdict: Verdict[DeletedAcls]) -> list[dict[str, Any]]:
    return [_fields(acl) for acl in verdict.value.acls] if isinstance(verdict, Accepted) else []


def _fields(acl: Acl) -> dict[str, Any]:
    return {
        "error_code": ErrorCode.none,
        "error_message": None,
        "resource_type": acl.kind,
        "resource_name": acl.name,
        "pattern_type": acl.pattern,
        **entry_fields(acl),
    }
