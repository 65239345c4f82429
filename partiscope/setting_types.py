"""Types of settings that refuse what their plain types take, and the check of a file's texts."""

import re
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field

from broker.host_name import bare_host, is_host_name
from control.kafka.connection.settings import quoted

TEXT_CHARACTERS_MAX: Final = 4_096
DEPTH_MAX: Final = 20
INT32_MAX: Final = 2**31 - 1
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")


def _require_no_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("write a number")
    return value


def _require_path(value: Any) -> Any:
    if value == "":
        raise ValueError("it is empty: name a path, or leave the setting out")
    return value


def _require_host(value: str) -> str:
    host = bare_host(value)
    if not is_host_name(host):
        raise ValueError("write the name or the IP address of a host")
    return host


Number = Annotated[int, BeforeValidator(_require_no_bool), Field(le=INT32_MAX)]
"""A whole number; ``true`` is none."""
Text = Annotated[str, Field(min_length=1)]
SettingPath = Annotated[Path, BeforeValidator(_require_path)]
"""A path; an empty one would be the working directory."""
Host = Annotated[str, AfterValidator(_require_host)]


def require_plain_texts(value: Any, path: str = "", depth: int = 0) -> None:
    """Names and texts of a tree of settings are bounded, and hold no control characters.

    Raises:
        ValueError: one is not, or the tree is nested deeper than any setting.
    """
    if depth > DEPTH_MAX:
        raise ValueError(f"{quoted(path)} is nested deeper than any setting")
    if isinstance(value, str) and len(value) > TEXT_CHARACTERS_MAX:
        raise ValueError(f"{path} is longer than {TEXT_CHARACTERS_MAX:,} characters")
    if isinstance(value, str) and (control := _CONTROL.search(value)):
        # The text itself is not quoted: it may be a password.
        raise ValueError(f"{path} holds the control character {control[0]!r}: remove it")
    if isinstance(value, list | tuple):
        for item in value:
            require_plain_texts(item, path, depth + 1)
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(name, str) and _CONTROL.search(name):
                raise ValueError(f"the name {quoted(name)} holds a control character: remove it")
            require_plain_texts(item, f"{path}.{name}" if path else str(name), depth + 1)
