"""The error of a configuration that cannot be used."""


class ConfigError(Exception):
    """A configuration that cannot be used: what, why, and what to write instead."""
