"""Decoding of keys and values: formats, schemas of a registry, records of internal topics."""
