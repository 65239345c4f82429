"""Disks of brokers while a reassignment runs: what may come where, and whether it fits."""
