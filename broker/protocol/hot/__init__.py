"""Hand-written, zero-copy codecs of the APIs that carry the load."""
