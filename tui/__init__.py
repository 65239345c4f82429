"""The terminal face: the same paths, words and keys as the page."""
