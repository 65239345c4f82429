"""Views of the page: each file has ``layout(context, path)`` and ``register(app, context)``."""
