"""Wire vocabulary: frames, messages, record batches. Imports nothing of ours."""

import importlib
import sys

# kio's types offer themselves to Hypothesis wherever that is installed, as it is for our tests.
# Every broker, screen and command would load it: 0.3 s and 20 MB for nothing.
if "hypothesis" not in sys.modules and "kio.static.primitive" not in sys.modules:
    sys.modules["hypothesis"] = None  # type: ignore[assignment]
    try:
        importlib.import_module("kio.static.primitive")
    finally:
        del sys.modules["hypothesis"]
