"""Bounds of the records of the bus, for who writes and who reads them."""

from typing import Final

INFLATED_BYTES_MAX: Final = 16 << 20
"""Of a packed plan: some 350,000 partitions."""
MESSAGE_LENGTH_MAX: Final = 64 << 10
"""Characters of the line for people."""
