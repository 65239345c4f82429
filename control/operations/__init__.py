"""Use cases of an operator, shared by both screens and the command line."""
