"""What executors are given of our code is all that a task needs."""

import subprocess
import sys
from pathlib import Path

from spark_metrics.buckets.python_package import write_archive


def test_the_job_itself_is_loaded_from_the_archive_alone(tmp_path: Path) -> None:
    archive = write_archive(str(tmp_path))
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); import spark_metrics.__main__; "
        "print(all(it.__file__.startswith(sys.path[0]) for name, it in sys.modules.items() "
        "if name.startswith(('broker.', 'spark_metrics.'))))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert ran.stdout.strip() == "True"


def test_a_task_is_loaded_from_the_archive_alone(tmp_path: Path) -> None:
    archive = write_archive(str(tmp_path))
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); "
        "from spark_metrics.buckets import on_executors; "
        "mine = [it.__file__ for name, it in sys.modules.items() "
        "if name.startswith(('broker.', 'spark_metrics.'))]; "
        "print(len(mine), all(it.startswith(sys.path[0]) for it in mine), 'pyspark' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    count, is_ours, has_spark = ran.stdout.split()
    assert int(count) > 40
    assert (is_ours, has_spark) == ("True", "False")
