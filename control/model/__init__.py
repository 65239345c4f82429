"""Pure: ids, columnar cluster snapshot, findings."""
