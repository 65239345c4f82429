"""The imperative shell: connections, peers, node life cycle."""
