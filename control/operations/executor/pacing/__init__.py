"""When the next partition is asked for, and how often the cluster is looked at."""
