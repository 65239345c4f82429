"""Delivers alerts: judges rules by snapshots, tells receivers, and tries rules on history."""
