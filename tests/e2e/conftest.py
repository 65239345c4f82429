"""End-to-end tests tell a story: within a file they run in the order in which they are written."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Undo the shuffle inside the files of this folder; other tests stay shuffled."""
    ours = [index for index, item in enumerate(items) if "tests/e2e/" in item.nodeid]
    story = sorted((items[index] for index in ours), key=lambda item: (str(item.path), _line(item)))
    for index, item in zip(ours, story, strict=True):
        items[index] = item


def _line(item: pytest.Item) -> int:
    return item.location[1] or 0
