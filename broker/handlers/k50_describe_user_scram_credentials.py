"""DescribeUserScramCredentials, version 0 (KIP-554).

Behaviour: answered from this broker's image: mechanisms and iterations of the users named, or of
all. Salts and keys are not told. A user named twice is DUPLICATE_RESOURCE.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation

API_KEY: Final = 50


@handles(api_key=API_KEY, versions=(0, 0), cluster_operation=Operation.DESCRIBE)
async def handle_describe_scram(request: Request, node: NodeServices) -> LargeAnswer:
    """Users who log in by SCRAM."""
    infos: dict[str, list[dict[str, int]]] = defaultdict(list)
    for (mechanism, name), credential in sorted(node.metadata.image.scram.items()):
        infos[name].append({"mechanism": mechanism, "iterations": credential.iterations})
    counts = Counter(it.name for it in request.message.users or ()) or Counter(infos.keys())
    results = [_result(name, infos.get(name, ()), times) for name, times in counts.items()]
    return LargeAnswer(len(results), error_code=ErrorCode.none, results=results)


def _result(name: str, infos: Sequence[dict[str, int]], times: int) -> dict[str, Any]:
    error, why = ErrorCode.none, ""
    if times > 1:
        error = ErrorCode.duplicate_resource
        why = "Cannot describe SCRAM credentials for the same user twice in a single request"
    elif not infos:
        error = ErrorCode.resource_not_found
        why = "Attempt to describe a user credential that does not exist"
    return {
        "user": name,
        "error_code": error,
        "error_message": f"{why}: {name}" if why else None,
        "credential_infos": () if why else infos,
    }
