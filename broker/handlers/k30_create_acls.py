"""CreateAcls, versions 1-3.

Behaviour: executed by the active controller; a verdict on each entry. One that is there already is
kept once. Without an authorizer SECURITY_DISABLED.
"""

from typing import Any, Final
from uuid import uuid4

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.controller_channel import ControllerRequest
from broker.controller.security.acl_control import decide_create_acls
from broker.handlers.acl_requests import NO_AUTHORIZER, read_acl
from broker.handlers.controller_apis import controller_api, verdict_fields
from broker.metadata.acls import Operation
from broker.protocol import codec

API_KEY: Final = 30


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    refused = {"error_code": error, "error_message": reason}
    return codec.build_response(API_KEY, version, results=[refused for _ in message.creations])


@controller_api(API_KEY, versions=(1, 3), refuse=_refuse, cluster_operation=Operation.ALTER)
async def execute_create_acls(active: ActiveController, request: ControllerRequest) -> Any:
    """Create entries as the active controller."""
    message, version = request.message, request.api_version
    if not active.authorization.is_enabled:
        return _refuse(version, message, ErrorCode.security_disabled, NO_AUTHORIZER)
    acls = [read_acl(it) for it in message.creations]
    verdicts = await active.run(lambda image: decide_create_acls(acls, image, uuid4))
    results = [verdict_fields(it) for it in verdicts]
    return codec.build_response(API_KEY, version, results=results)
