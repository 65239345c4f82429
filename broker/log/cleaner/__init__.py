"""Log compaction: what to clean, one run, and the thread that runs."""
