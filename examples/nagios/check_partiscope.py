#!/usr/bin/env python3
"""A check for Nagios, Icinga, Sensu and the like: one line, and their exit statuses.

    check_partiscope.py [ARGUMENT OF `partiscope status` …]

0 OK: no finding. 1 WARNING. 2 CRITICAL. 3 UNKNOWN: no figures, or they are stale. PARTISCOPE names
the program where it is not in PATH.
"""

import json
import os
import subprocess
import sys

OK, WARNING, CRITICAL, UNKNOWN = range(4)
NAMES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
TIMEOUT_S = 30
CRITICAL_STANDS = 5
"""Exit status of `partiscope status` where a critical finding stands: it wrote its document."""


def judge(document):
    """Status and line for what `status --json` tells; a notice is no alarm."""
    findings = [it for it in document["findings"] if it["severity"] in ("warning", "critical")]
    words = "; ".join(f"{it['title']} ({it['subject']})" for it in findings) or "no finding"
    lags = [it["lag"] for it in document["groups"] if it["lag"] is not None]
    line = f"{words} | findings={len(findings)} max_lag={max(lags, default='U')}"
    if any(it["severity"] == "critical" for it in findings):
        return CRITICAL, line
    if document["stale"]:
        return UNKNOWN, f"figures are stale: {line}"
    return (WARNING if findings else OK), line


def main():
    """Ask once, print one line, and exit as checks do."""
    command = [os.environ.get("PARTISCOPE", "partiscope"), "status", "--json", *sys.argv[1:]]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        status, line = UNKNOWN, f"{command[0]}: {error}"
    else:
        if done.returncode in (0, CRITICAL_STANDS):
            status, line = judge(json.loads(done.stdout))
        else:
            status, line = UNKNOWN, " ".join(done.stderr.split())[:300]
    print(f"PARTISCOPE {NAMES[status]}: {line}")
    return status


if __name__ == "__main__":
    sys.exit(main())
