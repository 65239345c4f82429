"""The files of a store: where they lie, which of them are a version, who writes and sweeps them."""
