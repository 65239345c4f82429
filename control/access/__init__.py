"""Logins and roles: the one judgement that all faces meet. Pure."""
