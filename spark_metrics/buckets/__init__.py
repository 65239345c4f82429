"""A batch cut into buckets, and where each of them is folded: in the driver, or by executors."""
