"""The map of brokers and topics: a pixel a cell, on a log scale, and what is told of each."""

import base64
import re
import struct
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from control.views.plan_map import PlanCell, PlanMap, plan_map
from control.views.snapshots.overview import REST, HeatMap
from dashboard.components.heat_box import (
    COLUMN_NAMES_MAX,
    MEASURES,
    ends_of,
    heat_box,
    plan_boxes,
    shares,
)
from dashboard.components.markup import MARKUP
from dashboard.components.raster import picture_of
from dashboard.theme import LIGHT
from planner.goals import PlanRequest
from planner.optimizer import plan
from planner.planned_map import KeptPlan
from tests.support.phrases import lacking
from tests.unit.control.clusters import MIB
from tests.unit.dashboard.page_context import words_of
from tests.unit.planner.clusters import seeded

NAN = float("nan")
UNEVEN = HeatMap(
    measure="size_bytes",
    brokers=[101, 102],
    topics=["a", "b<&>"],
    values=[[MIB, 100 * MIB], [NAN, 10 * MIB]],
)


def drawn(box: Any) -> str:
    return str(getattr(box, MARKUP))


def told(box: Any) -> list[str]:
    found = re.search(r'data-words="([^"]*)"', drawn(box))
    assert found
    return found[1].split("\t")


def pixels(address: str) -> list[list[tuple[int, ...]]]:
    """By row, read as any reader of PNG does."""
    data = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    at, chunks = 8, {}
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        (crc,) = struct.unpack_from(">I", data, at + 8 + size)
        assert crc == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + size
    width, height = struct.unpack_from(">2I", chunks[b"IHDR"])
    lines = zlib.decompress(chunks[b"IDAT"])
    step = 1 + 4 * width
    rows = [lines[place * step + 1 : (place + 1) * step] for place in range(height)]
    return [[tuple(row[at : at + 4]) for at in range(0, 4 * width, 4)] for row in rows]


def test_colours_are_on_a_log_scale_and_what_is_empty_is_clear() -> None:
    ends = (float(MIB), float(100 * MIB))
    assert ends_of(UNEVEN) == ends
    found = shares(UNEVEN, ends)
    assert found[0].tolist() == [0, 1]
    assert np.isnan(found[1, 0])
    assert found[1, 1] == pytest.approx(0.5)

    (least, most), (nothing, _) = pixels(picture_of(found, LIGHT.heat))
    assert least == (*bytes.fromhex(LIGHT.heat[0][1:]), 255)
    assert most == (*bytes.fromhex(LIGHT.heat[-1][1:]), 255)
    assert nothing[3] == 0


def test_the_sum_of_other_topics_does_not_make_the_rest_pale() -> None:
    heat = replace(UNEVEN, topics=["a", "b", REST], values=[[1, 9, 900], [NAN, 3, 700]])

    assert ends_of(heat) == (1, 9)
    assert shares(heat, (1, 9))[:, 2].tolist() == [1, 1]


def test_each_cell_is_told_with_its_unit_and_names_stay_text() -> None:
    box = heat_box(UNEVEN, "light")

    assert told(box) == ["1.0 MiB", "100 MiB", "", "10.0 MiB"]
    assert "b&lt;&amp;&gt;" in drawn(box)
    assert "<&" not in drawn(box)
    assert not lacking(drawn(box), "2 topics on 2 brokers", "1.0 MiB to 100 MiB")


def test_one_value_everywhere_stands_in_the_middle_and_is_written_once() -> None:
    one = HeatMap(measure="replicas", brokers=[1], topics=["t"], values=[[3.0]])

    assert shares(one, (3.0, 3.0)).tolist() == [[0.5]]
    assert drawn(heat_box(one, "dark")).count("<span>3</span>") == 1


def test_of_many_topics_some_are_named_and_all_are_told() -> None:
    topics = [f"topic-{place}" for place in range(60)]
    box = heat_box(
        HeatMap(measure="leaders", brokers=[1], topics=topics, values=[[1.0] * 60]), "light"
    )

    assert drawn(box).count("<b>topic-") == COLUMN_NAMES_MAX
    assert "\t".join(topics) in drawn(box)


@pytest.mark.parametrize("measure", MEASURES)
def test_nothing_to_show_is_said(measure: str) -> None:
    nobody = HeatMap(measure=measure, brokers=[], topics=[], values=[])
    nothing = HeatMap(measure=measure, brokers=[1], topics=["t"], values=[[NAN]])
    assert "no partition" in words_of(heat_box(nobody, "light"))
    assert words_of(heat_box(nothing, "light")) == f"no {MEASURES[measure]} anywhere"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_plan_on_the_map_has_one_scale_and_signs(scheme: str) -> None:
    made = plan(seeded(5, joined=3), PlanRequest(alternatives=1))
    found = plan_map(KeptPlan(plan=made, chosen=0, values={}), "replicas")
    now, planned = plan_boxes(found, scheme)

    scale = re.compile(r'"heat-ends">(.*?)</div>')
    assert scale.findall(drawn(now)) == scale.findall(drawn(planned))
    assert "heat-sign" not in drawn(now)
    words, width = told(planned), len(found.now.topics)
    grow = {place // width for place, it in enumerate(words) if it.startswith("grows: ")}
    shrink = {place // width for place, it in enumerate(words) if it.startswith("shrinks: ")}
    joined = {found.now.brokers.index(broker) for broker in (110, 111, 112)}
    assert joined <= grow
    assert not joined & shrink
    assert all("(+" in it for it in words if it.startswith("grows: "))
    assert all("(−" in it for it in words if it.startswith("shrinks: "))
    signs = drawn(planned).count("heat-sign")
    changed = [it for it in words if it.startswith(("grows: ", "shrinks: "))]
    assert signs == len(changed)


def test_a_small_plan_tells_what_is_planned_beside_each_sign() -> None:
    cells = [[("▲", 4, 9), ("", 5, 5)], [("▼", 5, 0), ("▼", 7, 3)]]
    heats = [
        HeatMap(
            measure="replicas",
            brokers=[1, 2],
            topics=["a", "b"],
            values=[[float(cell[at]) or NAN for cell in row] for row in cells],
        )
        for at in (1, 2)
    ]
    found = PlanMap(
        measure="replicas",
        now=heats[0],
        planned=heats[1],
        cells=tuple(
            tuple(
                PlanCell(broker=1, topic="t", before=was, after=will, sign=sign, difference="")
                for sign, was, will in row
            )
            for row in cells
        ),
        topics_left_out=0,
    )
    _, planned = plan_boxes(found, "light")
    figures = re.findall(r">([▲▼])</i><b[^>]*>([^<]*)<", drawn(planned))
    assert figures == [("▲", "9"), ("▼", "0"), ("▼", "3")]


def test_values_stand_in_the_cells_of_a_small_map_in_ink_that_reads_on_them() -> None:
    small = drawn(heat_box(UNEVEN, "light"))
    assert re.findall(r'class="heat-value"><b[^>]*>([^<]*)<', small) == [
        "1.0 MiB", "100 MiB", "", "10.0 MiB"
    ]  # fmt: skip
    assert {"#000", "#fff"} == set(re.findall(r"color:\s*(#\w+)", small))
    many = [f"t{number}" for number in range(COLUMN_NAMES_MAX + 1)]
    wide = replace(UNEVEN, topics=many, values=[[MIB] * len(many)] * 2)
    assert "heat-value" not in drawn(heat_box(wide, "light"))
