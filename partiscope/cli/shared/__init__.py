"""Flags, tables, errors, confirmation and operations that all commands share."""
