"""Masking rules: which fields a path means, in which topics a rule holds."""

import copy
from typing import Any

import pytest

from control.access.masking import (
    DEPTH_MAX,
    MASK,
    FieldPath,
    MaskingRule,
    fields_of,
    masked_document,
)

ORDER: dict[str, Any] = {
    "id": 7,
    "card": {"number": "4111", "holder": None},
    "items": [{"card": {"number": "5500"}, "sku": "a"}, {"sku": "b"}],
    "a.b": "dotted",
}


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        ("value.id", {"id": MASK}),
        ("value.card", {"card": MASK}),
        ("value.card.number", {"card": {"number": MASK, "holder": None}}),
        ("value.card.holder", {"card": {"number": "4111", "holder": MASK}}),
        ("value.card.*", {"card": {"number": MASK, "holder": MASK}}),
        ("value.items.card.number", {"items": [{"card": {"number": MASK}, "sku": "a"},
                                               {"sku": "b"}]}),
        ("value.**.number", {"card": {"number": MASK, "holder": None},
                             "items": [{"card": {"number": MASK}, "sku": "a"}, {"sku": "b"}]}),
        ("value.**.id", {"id": MASK}),
        ('value."a.b"', {"a.b": MASK}),
        ("value.Id", {}),
        ("value.card.number.digits", {"card": {"number": MASK, "holder": None}}),
        ("value.none", {}),
    ],
)  # fmt: skip
def test_a_path_masks_what_it_names_and_nothing_else(path: str, changed: dict[str, Any]) -> None:
    before = copy.deepcopy(ORDER)
    assert masked_document(ORDER, [FieldPath.of(path)]) == ORDER | changed
    assert before == ORDER


def test_a_list_at_the_top_is_walked_through() -> None:
    found = masked_document([{"pin": 1}, [{"pin": 2}], 3], [FieldPath.of("value.pin")])
    assert found == [{"pin": MASK}, [{"pin": MASK}], MASK]


def test_a_whole_part_is_masked_whatever_it_holds() -> None:
    assert masked_document(ORDER, [FieldPath.of("value"), FieldPath.of("value.id")]) == MASK


@pytest.mark.parametrize(
    "text",
    ["", "card", "value.", "value..card", "value card", "headers", "headers.a.b", "Value",
     'value."card', "value" + ".a" * (DEPTH_MAX + 1), ".value", "value.a."],
)  # fmt: skip
def test_a_field_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no field"):
        FieldPath.of(text)


def test_headers_are_found_in_any_case() -> None:
    assert FieldPath.of("headers.X-Auth").is_of_header("x-auth")
    assert FieldPath.of("headers.*").is_of_header("anything")
    assert not FieldPath.of("headers.X-Auth").is_of_header("x-auth-2")
    assert not FieldPath.of("value.a").is_of_header("a")


def test_a_rule_holds_in_its_topics_and_clusters() -> None:
    pin = FieldPath.of("value.pin")
    rules = [MaskingRule(topics=("payments-*", "cards"), fields=(pin,), clusters=("prod",))]
    assert fields_of(rules, "prod", "payments-eu") == {pin}
    assert fields_of(rules, "prod", "cards") == {pin}
    assert not fields_of(rules, "prod", "orders")
    assert not fields_of(rules, "test", "cards")
    assert fields_of(rules, "", "cards") == {pin}
