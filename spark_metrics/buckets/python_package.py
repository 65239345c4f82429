"""Our code as one archive, which Spark hands to the executors that fold.

    python -m spark_metrics.buckets.python_package FOLDER

writes two files into this folder: the archive for ``spark-submit --py-files``, and the program that
``spark-submit`` runs.
"""

import sys
from pathlib import Path
from shutil import copy
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile
from zipimport import zipimporter

import broker
import spark_metrics

_WINDOW: Final = ("__init__.py", "metrics_schema.py", "named_file.py", "metrics/*.py")
"""The files of ``broker`` that the job uses."""


def is_loaded_from_archive() -> bool:
    """Whether this process runs the code of such an archive: Spark was given it already."""
    return isinstance(spark_metrics.__loader__, zipimporter)


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


def main(folder: str) -> None:
    """Write both files into this folder, which is made if need be."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_archive(folder)
    copy(Path(spark_metrics.__path__[0], "__main__.py"), Path(folder, "partiscope-metrics.py"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("write: python -m spark_metrics.buckets.python_package FOLDER")
    try:
        main(sys.argv[1])
    except OSError as error:
        sys.exit(f"{sys.argv[1]}: {error.strerror}; name a folder that can be written")
