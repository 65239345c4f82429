"""Commands that send and read messages."""
