"""Views of the page: each file has ``layout(screen, path)`` and ``register(app, screen)``."""
