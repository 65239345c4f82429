"""End-to-end tests tell a story: within a file they run in the order in which they are written."""

from typing import Any

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Undo the shuffle inside the files of this folder; other tests stay shuffled."""
    ours = [index for index, item in enumerate(items) if "tests/e2e/" in item.nodeid]
    story = sorted((items[index] for index in ours), key=_place)
    for index, item in zip(ours, story, strict=True):
        items[index] = item


def _place(item: pytest.Item) -> tuple[str, int, tuple[int, ...]]:
    """File, line, and which of its parameters."""
    spec: Any = getattr(item, "callspec", None)
    indices = () if spec is None else tuple(spec.indices.values())
    return str(item.path), item.location[1] or 0, indices
