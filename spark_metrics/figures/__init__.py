"""Formulas of docs/reference/definitions.md as functions over columns, a family a file. Pure."""
