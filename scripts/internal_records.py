"""Writes the schemas of Kafka's internal topics from the jars of a Kafka release.

    python scripts/internal_records.py LIBS-FOLDER > control/messages/decoding/internal_records.json

Kafka generates its own readers and formatters from the same files.
"""

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

TOPICS: Final = {
    "__consumer_offsets": "kafka-group-coordinator-[0-9]*.jar",
    "__transaction_state": "kafka-transaction-coordinator-[0-9]*.jar",
    "__share_group_state": "kafka-share-coordinator-[0-9]*.jar",
}
KEPT: Final = ("name", "type", "versions", "nullableVersions", "taggedVersions", "tag", "default")
_COMMENT: Final = re.compile(r"^\s*//.*$|(?<=[,\[{}])\s*//.*$", re.MULTILINE)


def fields_of(
    fields: list[dict[str, Any]], shared: dict[str, list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Fields without their descriptions; structures that several share stand in each."""
    found = []
    for field in fields:
        kept = {name: field[name] for name in KEPT if name in field}
        inner = field.get("fields") or shared.get(field["type"].removeprefix("[]"))
        if inner:
            kept["fields"] = fields_of(inner, shared)
        found.append(kept)
    return found


def schemas_of(jar: Path) -> dict[str, dict[str, Any]]:
    """Keys and values of one topic by their api key."""
    found: dict[str, dict[str, Any]] = {"key": {}, "value": {}}
    with zipfile.ZipFile(jar) as opened:
        for name in sorted(opened.namelist()):
            if not re.fullmatch(r"common/message/\w+\.json", name):
                continue
            schema = json.loads(_COMMENT.sub("", opened.read(name).decode()))
            shared = {each["name"]: each["fields"] for each in schema.get("commonStructs", ())}
            part = schema["type"].removeprefix("coordinator-")
            found[part][str(schema["apiKey"])] = {
                "name": schema["name"],
                "validVersions": schema["validVersions"],
                "flexibleVersions": schema["flexibleVersions"],
                "fields": fields_of(schema["fields"], shared),
            }
    return found


def main() -> None:
    """One line a record type, so that a newer release shows as a readable difference."""
    libs = Path(sys.argv[1])
    topics = []
    for topic, pattern in TOPICS.items():
        (jar,) = libs.glob(pattern)
        parts = []
        for part, schemas in schemas_of(jar).items():
            lines = ",\n".join(
                f'   "{number}": {json.dumps(schemas[number])}'
                for number in sorted(schemas, key=int)
            )
            parts.append(f'  "{part}": {{\n{lines}\n  }}')
        topics.append(f' "{topic}": {{\n' + ",\n".join(parts) + "\n }")
    sys.stdout.write("{\n" + ",\n".join(topics) + "\n}\n")


if __name__ == "__main__":
    main()
