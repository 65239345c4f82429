"""How long a reassignment still takes."""
