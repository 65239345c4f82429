"""URLs of store and checkpoint: they stand in command lines, logs and on screens."""

import re
from typing import Final

_PASSWORD: Final = re.compile(r"[A-Za-z][\w+.-]*://[^/@:]*:(?![0-9]+(?:/|$))[^@]*@")
"""``s3://KEY:SECRET@bucket``; a port before a path that has an ``@`` is none."""


def require_no_password(url: str) -> str:
    """The folder or URL as it is.

    Raises:
        ValueError: it holds a key or password.
    """
    if _PASSWORD.match(url):
        raise ValueError(
            "it holds a password, which everybody who lists processes would see; set it in the "
            "environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), and write the URL without it"
        )
    return url
