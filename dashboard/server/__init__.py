"""Answers plain requests; routes them to clusters, checks their origin, keeps answers."""
