"""Yielding to consumer groups that fall behind: rules, readings, the fold, the watch."""
