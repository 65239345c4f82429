"""A rig of three nodes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.broker.replication.rig import Rig


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    """Three nodes without a topic."""
    made = Rig(tmp_path)
    yield made
    await made.close()
