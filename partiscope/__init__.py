"""The composition root: the command line and the supervisor wire all rooms; nobody imports it."""
