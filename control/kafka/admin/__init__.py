"""Administration of a cluster: topics, configs, groups, offsets, reassignments."""
