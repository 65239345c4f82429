"""Room on disks: stages of a plan, and what has to make room so that it is done wholly."""
