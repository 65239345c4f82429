"""Java's .properties files, as far as Kafka's configurations use them."""

from collections.abc import Iterator


class PropertiesError(ValueError):
    """A line that is not a property; the message names it."""


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values of a properties file; the last value of a key wins, as in Java.

    Comments start with # or !, a trailing backslash continues a line, = or : or blanks separate.

    :raises PropertiesError: a line without a key.
    """
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key, value = _split(line)
        if not key:
            raise PropertiesError(f"line {number} has no key: {line!r}")
        properties[key] = value
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    pending = ""
    started = 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.lstrip()
        if not pending and (not line or line[0] in "#!"):
            continue
        started = started if pending else number
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            pending += line[:-1]
            continue
        yield started, pending + line
        pending = ""
    if pending:
        yield started, pending


def _split(line: str) -> tuple[str, str]:
    """Key and value; a backslash keeps the separator behind it in the key."""
    key: list[str] = []
    position = 0
    while position < len(line) and line[position] not in "=: \t":
        if line[position] == "\\" and position + 1 < len(line):
            position += 1
        key.append(line[position])
        position += 1
    rest = line[position:].lstrip(" \t")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t")
    return "".join(key), _unescape(rest.rstrip())


def _unescape(value: str) -> str:
    if "\\" not in value:
        return value
    out: list[str] = []
    position = 0
    while position < len(value):
        character = value[position]
        if character == "\\" and position + 1 < len(value):
            position += 1
            character = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}.get(
                value[position], value[position]
            )
        out.append(character)
        position += 1
    return "".join(out)
