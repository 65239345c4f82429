"""Where the page goes by itself once something has begun, unless one went elsewhere meanwhile."""


def redirect(from_: str, to: str) -> dict[str, str]:
    """Paths of views; the asking page shows the first. They are data of `ids.REDIRECT`, which the
    browser reads (followRedirect of assets/modules/views.js)."""
    return {"from": f"/{from_}", "to": to}
