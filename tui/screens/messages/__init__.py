"""Views that read and send messages."""
