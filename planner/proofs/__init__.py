"""Proofs about plans: the least that any plan must move, and why a request cannot be fulfilled."""
