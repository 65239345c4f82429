"""Whether a node's log directory takes new replicas, as ``cordoned.log.dirs`` says (KIP-1066)."""

from typing import Final

from broker.metadata.effective_configs import NodeConfig, broker_config_value
from broker.metadata.image import MetadataImage

CORDONED_CONFIG: Final = "cordoned.log.dirs"
ALL: Final = "*"


def is_cordoned(image: MetadataImage, config: NodeConfig, directory: str) -> bool:
    """Whether the directory of this node takes no new replicas."""
    named = _entries(broker_config_value(image, config, CORDONED_CONFIG) or "")
    return ALL in named or directory in named


def problem_of_cordon(value: str, directory: str) -> str:
    """Why a node with this directory refuses the value, in Kafka's words; empty: it takes it."""
    named = _entries(value)
    if len(set(named)) < len(named):
        return f"Configuration '{CORDONED_CONFIG}' values must not be duplicated."
    if ALL in named:
        is_alone = len(named) == 1
        words = f"When {CORDONED_CONFIG} is set to *, it must not contain other values"
        return "" if is_alone else f"requirement failed: {words}"
    missing = [entry for entry in named if entry != directory]
    if not missing:
        return ""
    return (
        f"requirement failed: All entries in {CORDONED_CONFIG} must be present in log.dirs or "
        f"log.dir. Missing entries : {', '.join(missing)}"
    )


def _entries(value: str) -> list[str]:
    return [entry for entry in (part.strip() for part in value.split(",")) if entry]
