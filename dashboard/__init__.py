"""The web face: thin callbacks, pure figures."""
