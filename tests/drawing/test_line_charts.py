"""Line charts and histograms show the given values."""

import re
from xml.etree import ElementTree as Xml

from overheard.drawing.line_charts import (
    Axis,
    TradeoffSeries,
    frontier_chart,
    histogram_chart,
)
from overheard.drawing.point_names import NamedPoint
from tests.runs.audits import HOSTILE

PERCENT = Axis("of all, %", 0.0, 100.0)


def test_the_end_of_the_axis_falls_into_the_last_bin() -> None:
    # 100 would begin an eleventh bin: one bar for it with 95, one for 5.
    bars = [histogram_chart(values, 10.0, PERCENT, f"{len(values)}") for values in (
        [5.0], [5.0, 95.0], [5.0, 95.0, 100.0],
    )]  # fmt: skip
    heights = [len(re.findall(r"var\(--accent\)", bar)) for bar in bars]
    assert heights[0] == heights[1] == heights[2]
    assert len({str(bar) for bar in bars}) == 3


def test_names_of_points_are_escaped_and_may_be_missing() -> None:
    trade = TradeoffSeries(
        0, True, [NamedPoint(HOSTILE, 10.0, 90.0), NamedPoint("", 20.0, 95.0)]
    )
    drawing = frontier_chart([trade], 5.0, PERCENT, PERCENT, "frontier")
    assert "<script" not in drawing
    words = [element.text for element in Xml.fromstring(drawing).iter("text")]
    assert any(word and word.startswith("<script") for word in words)
