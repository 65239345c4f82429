"""Commands that show the state of clusters and what was changed."""
