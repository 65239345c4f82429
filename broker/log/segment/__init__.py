"""One segment: batches, indexes, and the files that are open."""
