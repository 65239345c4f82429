"""Opening a partition's directory, also after a crash."""
