"""Views of a whole cluster, and of all clusters side by side."""
