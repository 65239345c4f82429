"""AlterClientQuotas, versions 0-1 (KIP-546).

Behaviour: executed by the active controller; one verdict an entity, which is altered as a whole or
not at all; validate_only. Addresses are numbers, where Kafka takes names of hosts as well.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.controller_channel import ControllerRequest
from broker.controller.security.quota_control import QuotaAlteration, decide_alter_quotas
from broker.handlers.controller_apis import controller_api, run_in_steps, verdict_fields
from broker.metadata.acls import Operation
from broker.metadata.quotas import QuotaEntity, quota_entity
from broker.protocol import codec

API_KEY: Final = 49


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    refused = {"error_code": error, "error_message": reason}
    entries = [{**refused, "entity": _parts(_entity(it))} for it in message.entries]
    return codec.build_response(API_KEY, version, entries=entries)


@controller_api(API_KEY, versions=(0, 1), cluster_operation=Operation.ALTER_CONFIGS, refuse=_refuse)
async def execute_alter_quotas(active: ActiveController, request: ControllerRequest) -> Any:
    """Alter quotas as the active controller."""
    message = request.message
    alterations = [
        QuotaAlteration(
            entity=_entity(entry),
            changes=[(it.key, None if it.remove else float(it.value)) for it in entry.ops],
        )
        for entry in message.entries
    ]
    verdicts = await run_in_steps(
        active.dry_run if message.validate_only else active.run,
        alterations,
        lambda it: it.entity,
        decide_alter_quotas,
        records=sum(len(it.changes) for it in alterations),
    )
    entries = [
        {"entity": _parts(entity), **verdict_fields(verdict)}
        for entity, verdict in verdicts.items()
    ]
    return codec.build_response(API_KEY, request.api_version, entries=entries)


def _entity(entry: Any) -> QuotaEntity:
    return quota_entity((it.entity_type, it.entity_name) for it in entry.entity)


def _parts(entity: QuotaEntity) -> list[dict[str, str | None]]:
    return [{"entity_type": kind, "entity_name": name} for kind, name in entity]
