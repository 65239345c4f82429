"""Snapshots of a cluster for all faces: of now, kept fresh by the feed, and of the past."""
