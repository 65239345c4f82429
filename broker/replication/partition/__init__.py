"""One replica on this node, and the effects of its changes."""
