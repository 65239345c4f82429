"""Logins of the page: who asks, for how long, and the page that asks for name and password."""
