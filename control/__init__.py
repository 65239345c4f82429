"""The operator core shared by both screens and the command line."""
