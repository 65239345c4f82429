"""What one line of the journal keeps."""

from control.operations.bus.journal import VALUES_MAX, _first


def test_values_beyond_the_bound_are_counted() -> None:
    few = {f"t-{number}": number for number in range(VALUES_MAX)}
    assert _first(few) == few
    kept = _first({**few, "one": 1, "two": 2})
    assert len(kept) == VALUES_MAX + 1
    assert kept["…"] == "2 more values"
