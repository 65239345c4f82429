"""Our code as one archive, which Spark hands to the executors that fold."""

from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

import broker
import spark_metrics

_WINDOW: Final = ("__init__.py", "metrics_schema.py", "metrics/*.py")
"""The files of ``broker`` that the job uses."""


def write_archive(folder: str) -> Path:
    """Write the archive into this folder; its path."""
    path = Path(folder) / "partiscope-metrics.zip"
    wanted = ((spark_metrics, ("**/*.py",)), (broker, _WINDOW))
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for package, patterns in wanted:
            home = Path(package.__path__[0])
            for file in (it for pattern in patterns for it in sorted(home.glob(pattern))):
                archive.write(file, file.relative_to(home.parent))
    return path
