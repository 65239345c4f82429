"""DescribeClientQuotas, versions 0-1 (KIP-546).

Behaviour: answered from this broker's image: entities that match each component of the filter;
strict ones have no further part. A filter that cannot be is INVALID_REQUEST, an unknown type of
entity UNSUPPORTED_VERSION.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation
from broker.metadata.quotas import CLIENT_ID, IP, USER, QuotaEntity

API_KEY: Final = 48
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
"""How a component matches: a name, the default, or whatever is named."""


@handles(api_key=API_KEY, versions=(0, 1), cluster_operation=Operation.DESCRIBE_CONFIGS)
async def handle_describe_quotas(request: Request, node: NodeServices) -> LargeAnswer:
    """Quotas of the entities that a filter means."""
    message, slices = request.message, Slices()
    refusal = _refusal(message.components)
    if refusal is not None:
        error, reason = refusal
        return LargeAnswer(0, error_code=error, error_message=reason, entries=None)
    entries = []
    for entity, quotas in node.metadata.image.quotas.items():
        await slices.pause()
        if _is_meant(entity, message):
            parts = [{"entity_type": kind, "entity_name": name} for kind, name in entity]
            values = [{"key": key, "value": value} for key, value in quotas.items()]
            entries.append({"entity": parts, "values": values})
    return LargeAnswer(len(entries), error_code=ErrorCode.none, error_message=None, entries=entries)


def _refusal(components: Any) -> tuple[ErrorCode, str] | None:
    """Why a filter means nothing."""
    kinds: set[str] = set()
    invalid = ErrorCode.invalid_request
    for component in components:
        kind, match, name = component.entity_type, component.match_type, component.match
        if not kind:
            return invalid, "Invalid empty entity type."
        if kind in kinds:
            return invalid, f"Entity type {kind} cannot appear more than once in the filter."
        if kind not in (USER, CLIENT_ID, IP):
            return ErrorCode.unsupported_version, f"Unsupported entity type {kind}"
        if match not in (EXACT, DEFAULT, SPECIFIED):
            return invalid, f"Unknown match type {match}"
        if (name is None) is (match == EXACT):
            return invalid, "A name is given where it matches exactly, and nowhere else."
        kinds.add(kind)
    if IP in kinds and len(kinds) > 1:
        return invalid, (
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return None


def _is_meant(entity: QuotaEntity, message: Any) -> bool:
    parts = dict(entity)
    if message.strict and len(parts) != len(message.components):
        return False
    return all(
        it.entity_type in parts
        and (it.match_type == SPECIFIED or parts[it.entity_type] == it.match)
        for it in message.components
    )
