"""Views of one thing with its figures and charts."""
