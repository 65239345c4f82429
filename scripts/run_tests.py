"""The tests, in three processes side by side; whatever fails is run once more by itself.

    .venv/bin/python scripts/run_tests.py {change,rest} [PYTEST-ARGUMENT …]

``change`` is what every change needs (`make test`), ``rest`` what `make test-all` adds: tests
marked ``thorough``. Tests marked ``soak`` are in neither.

What fails again is a failure. What passes then, with clusters of its own on a machine that is
quiet by now, is named as unsteady. Failures in many files are no chance and are not run again; nor
is anything where pytest is given arguments.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
LAST_FAILED: Final = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
SUITES: Final = {"change": "not soak and not thorough", "rest": "not soak and thorough"}
SIDE_BY_SIDE: Final = (
    "-n", "3", "--dist", "loadgroup", "--no-loadscope-reorder", "--durations=25",
)  # fmt: skip
TESTS_FAILED: Final = 1
FILES_MAX: Final = 10


def main(suite: str, *arguments: str) -> int:
    """pytest's exit status, of the second run where there is one."""
    pytest = (sys.executable, "-m", "pytest", "-m", SUITES[suite])
    LAST_FAILED.unlink(missing_ok=True)
    status = subprocess.run((*pytest, *SIDE_BY_SIDE, *arguments), cwd=ROOT, check=False).returncode
    failed = _failed_tests()
    files = {test.partition("::")[0] for test in failed}
    if arguments or status != TESTS_FAILED or not 0 < len(files) <= FILES_MAX:
        return status
    named = "\n".join(f"  {test}" for test in failed)
    print(f"\n{len(failed)} failed; once more, by themselves:\n{named}\n", flush=True)
    with NamedTemporaryFile("w", suffix=".txt") as names:
        names.write("\n".join(failed))
        names.flush()
        again = subprocess.run((*pytest, f"@{names.name}"), cwd=ROOT, check=False).returncode
    if again == 0:
        print(f"\nunsteady: failed beside others, passed by themselves:\n{named}")
    return again


def _failed_tests() -> list[str]:
    """Node ids without the group that a test run beside others carries behind an ``@``."""
    if not LAST_FAILED.exists():
        return []
    return [name.rpartition("@")[0] or name for name in json.loads(LAST_FAILED.read_text())]


if __name__ == "__main__":
    if sys.argv[1:2] not in ([name] for name in SUITES):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
