"""The states of a voter, pure."""
