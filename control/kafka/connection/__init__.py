"""Connections to a cluster: address, security, protocol, retries."""
