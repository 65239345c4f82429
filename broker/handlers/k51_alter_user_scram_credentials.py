"""AlterUserScramCredentials, version 0 (KIP-554).

Behaviour: executed by the active controller; one verdict a user. A user named twice is
DUPLICATE_RESOURCE, too few or too many iterations are UNACCEPTABLE_CREDENTIAL. Clients send the
salted password, of which the records keep what a server needs to check it.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.controller_channel import ControllerRequest
from broker.controller.security.scram_control import (
    ScramChange,
    ScramDeletion,
    ScramUpsertion,
    decide_alter_scram,
)
from broker.handlers.controller_apis import controller_api, run_in_steps, verdict_fields
from broker.metadata.acls import Operation
from broker.protocol import codec

API_KEY: Final = 51


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    users = dict.fromkeys(it.name for it in (*message.deletions, *message.upsertions))
    results = [{"user": it, "error_code": error, "error_message": reason} for it in users]
    return codec.build_response(API_KEY, version, results=results)


@controller_api(API_KEY, versions=(0, 0), cluster_operation=Operation.ALTER, refuse=_refuse)
async def execute_alter_scram(active: ActiveController, request: ControllerRequest) -> Any:
    """Alter users as the active controller."""
    message = request.message
    changes: list[ScramChange] = [
        ScramDeletion(name=it.name, mechanism=int(it.mechanism)) for it in message.deletions
    ]
    changes += [
        ScramUpsertion(
            name=it.name,
            mechanism=int(it.mechanism),
            iterations=int(it.iterations),
            salt=bytes(it.salt),
            salted_password=bytes(it.salted_password),
        )
        for it in message.upsertions
    ]
    verdicts = await run_in_steps(active.run, changes, lambda it: it.name, decide_alter_scram)
    results = [{"user": name, **verdict_fields(it)} for name, it in verdicts.items()]
    return codec.build_response(API_KEY, request.api_version, results=results)
