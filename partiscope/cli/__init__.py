"""One thin file per command; the words, flags, JSON keys and exit statuses are a contract."""
