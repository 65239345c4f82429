"""Membership of consumer groups (the classic protocol)."""
