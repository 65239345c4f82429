"""Tests, mirroring the rooms."""
