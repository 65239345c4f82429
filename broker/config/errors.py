"""What a configuration can have wrong."""


class ConfigError(Exception):
    """A configuration that cannot be used: what, why, and what to write instead."""
