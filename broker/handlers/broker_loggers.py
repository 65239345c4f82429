"""The levels of this broker's loggers, by Kafka's names of levels (KIP-412); they last as long as
the process."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from broker.controller.config_control import AlterOperation
from broker.controller.errors import InvalidConfigError, InvalidConfigRequestError

ROOT: Final = "root"
PACKAGE: Final = "broker"
TRACE: Final = 5
LEVELS: Final[Mapping[str, int]] = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
}


def broker_loggers() -> dict[str, str]:
    """The level in force of each logger, by its name."""
    names = [name for name in logging.root.manager.loggerDict if _is_ours(name)]
    return {name: _level_of(_logger(name)) for name in (ROOT, *sorted(names))}


def check_node(name: str, node_id: int) -> None:
    """Raises InvalidConfigRequestError for loggers of another broker."""
    if not (name.isascii() and name.isdecimal()):
        raise InvalidConfigRequestError(f"Node id must be an integer, but it is: {name}")
    if int(name) != node_id:
        raise InvalidConfigRequestError(
            f"Unexpected broker id, expected {node_id}, but received {name}"
        )


def alter_loggers(resource: Any, node_id: int, *, validate_only: bool) -> None:
    """Set levels as one resource of IncrementalAlterConfigs says: all of them or none.

    Raises InvalidConfigError, InvalidConfigRequestError.
    """
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        raise InvalidConfigRequestError("Error due to duplicate config keys")
    check_node(resource.resource_name, node_id)
    levels = {config.name: _level(config) for config in resource.configs}
    if not validate_only:
        for name, level in levels.items():
            _logger(name).setLevel(level)


def _level(config: Any) -> int:
    operation, name = int(config.config_operation), config.name
    is_removed = operation == AlterOperation.DELETE
    if config.value is None and not is_removed:
        raise InvalidConfigRequestError(f"Null value not supported for : {name}")
    if operation not in (AlterOperation.SET, AlterOperation.DELETE):
        known = operation in (AlterOperation.APPEND, AlterOperation.SUBTRACT)
        told = AlterOperation(operation).name if known else f"Unknown ({operation})"
        raise InvalidConfigRequestError(
            f"{told} operation is not allowed for the BROKER_LOGGER resource"
        )
    if name not in broker_loggers():
        raise InvalidConfigError(f"Logger {name} does not exist!")
    if is_removed:
        if name == ROOT:
            raise InvalidConfigRequestError(
                f"Removing the log level of the {ROOT} logger is not allowed"
            )
        return logging.NOTSET
    if config.value not in LEVELS:
        raise InvalidConfigError(
            f"Cannot set the log level of {name} to {config.value} as it is not a supported log "
            f"level. Valid log levels are {', '.join(LEVELS)}"
        )
    return LEVELS[config.value]


def _is_ours(name: str) -> bool:
    return name == PACKAGE or name.startswith(f"{PACKAGE}.")


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _level_of(logger: logging.Logger) -> str:
    level = logger.getEffectiveLevel()
    return next((name for name, least in LEVELS.items() if level >= least), "TRACE")
