"""From records of the metrics topic to rows: head, body, and the ranges that both must keep."""
