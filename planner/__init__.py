"""Plans replica placements: pure functions from a topology to proposals (README.md)."""
