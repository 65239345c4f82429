"""Names of hosts, as listeners, addresses and URLs hold them.

A resolver raises UnicodeError or ValueError for a text such as ``a..b``, where OSError is waited
for. So it is refused where a user writes it, and unreachable where a broker advertises it.
"""

import re
from typing import Final

CHARACTERS_MAX: Final = 253
_NAME: Final = re.compile(rf"[^\s:/@\[\]\x00-\x1f\x7f\ud800-\udfff]{{1,{CHARACTERS_MAX}}}")
_ADDRESS: Final = re.compile(r"[0-9a-fA-F:.]+(%[\w.-]+)?")
"""Of version 6, without its brackets."""


def address_text(host: str, port: int) -> str:
    """``host:port``; an address of version 6 in brackets, ``[::1]:9092``."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def bare_host(text: str) -> str:
    """A host without the brackets that an address of version 6 has in URLs."""
    return text[1:-1] if text.startswith("[") and text.endswith("]") else text


def is_host_name(text: str) -> bool:
    """Whether a resolver takes it: a name, an address of version 4, or one of version 6."""
    if ":" in text:
        return _ADDRESS.fullmatch(text) is not None
    if not _NAME.fullmatch(text):
        return False
    try:
        text.encode("idna")
    except UnicodeError:
        return False
    return True
