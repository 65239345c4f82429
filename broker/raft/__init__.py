"""The metadata quorum: Raft states as pure event handlers, and the shell that drives them."""
