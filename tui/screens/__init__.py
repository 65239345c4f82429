"""One file per view; each shows one path of control/views/paths.py."""
