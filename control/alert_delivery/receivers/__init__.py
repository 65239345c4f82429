"""Receivers of alerts: each sends a message, or says why it was not taken."""
