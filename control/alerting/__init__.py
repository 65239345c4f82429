"""Alerts at work: rules judged by snapshots, tellings delivered, and rules tried on history."""
