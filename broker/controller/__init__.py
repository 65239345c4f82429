"""Cluster metadata: image, records, decisions (decide/replay), placement, configs."""
