"""DescribeAcls, versions 1-3.

Behaviour: answered from this broker's image; the entries that the filter means, by resource.
Without an authorizer SECURITY_DISABLED.
"""

from collections import defaultdict
from typing import Any

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.handlers.acl_requests import NO_AUTHORIZER, entry_fields, read_filter
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation, PatternType, ResourceKind

API_KEY = 29


@handles(api_key=API_KEY, versions=(1, 3), cluster_operation=Operation.DESCRIBE)
async def handle_describe_acls(request: Request, node: NodeServices) -> LargeAnswer:
    """Entries that a filter means; others go on in between."""
    if not node.authorization.is_enabled:
        return _refuse(ErrorCode.security_disabled, NO_AUTHORIZER)
    wanted, slices = read_filter(request.message), Slices()
    if wanted.unknown:
        reason = f"Unknown {wanted.unknown}."
        return _refuse(ErrorCode.invalid_request, reason)
    found: dict[tuple[ResourceKind, str, PatternType], list[dict[str, Any]]] = defaultdict(list)
    for acl in node.metadata.image.acls.values():
        await slices.pause()
        if wanted.matches(acl):
            found[acl.kind, acl.name, acl.pattern].append(entry_fields(acl))
    resources = [
        {"resource_type": kind, "resource_name": name, "pattern_type": pattern, "acls": acls}
        for (kind, name, pattern), acls in found.items()
    ]
    entries = sum(map(len, found.values()))
    return LargeAnswer(entries, error_code=ErrorCode.none, error_message=None, resources=resources)


def _refuse(error: ErrorCode, reason: str) -> LargeAnswer:
    return LargeAnswer(0, error_code=error, error_message=reason, resources=[])
