"""The report of a finished move."""
