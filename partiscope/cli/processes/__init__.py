"""Commands that run a process or a screen until it is stopped."""
