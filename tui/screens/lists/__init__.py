"""Views that are one table."""
