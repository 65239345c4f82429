"""The report of a finished move: its data, lag of the groups that read what moved, its files."""
