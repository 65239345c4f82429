"""The commands of an installation's processes."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from partiscope.processes import metrics_part
from partiscope.settings import MetricsSettings, Settings


def test_the_heap_of_the_metrics_job_is_its_own_choice_unless_it_is_set(tmp_path: Path) -> None:
    by_size = metrics_part(Settings(data=tmp_path), "127.0.0.1:9092").command
    assert "--driver-memory" not in by_size
    chosen = Settings(data=tmp_path, metrics=MetricsSettings(driver_memory="2g"))
    command = metrics_part(chosen, "127.0.0.1:9092").command
    assert command[command.index("--driver-memory") + 1] == "2g"


@pytest.mark.parametrize("memory", ["2 GB", "lots", "2g -Dx=y"])
def test_a_heap_that_java_would_not_take_is_refused(memory: str) -> None:
    with pytest.raises(ValidationError, match="driver_memory"):
        MetricsSettings(driver_memory=memory)
