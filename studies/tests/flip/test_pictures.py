from xml.etree import ElementTree as Xml

import torch

from overheard_studies.flip.pictures import Picture, draw_picture_row


def drawn(*pictures: Picture) -> Xml.Element:
    return Xml.fromstring(draw_picture_row(pictures, "a <row>"))


def test_a_pixel_becomes_a_square_of_its_colour() -> None:
    # Two deviations below the mean and farther is black (0), above white (f = 15); the mean
    # itself, 7.5 of 15, is rounded to 8.
    grey = torch.tensor([[[-3.0, 0.0], [2.0, -2.0]]])
    paths = {one.get("fill"): one.get("d") for one in drawn(Picture(grey, ())).iter("path")}
    assert paths == {
        "#000": "M0 0h1v1h-1zM1 1h1v1h-1z",
        "#888": "M1 0h1v1h-1z",
        "#fff": "M0 1h1v1h-1z",
    }


def test_channels_are_red_green_and_blue() -> None:
    colour = torch.tensor([2.0, -2.0, 0.0]).view(3, 1, 1)
    (path,) = drawn(Picture(colour, ())).iter("path")
    assert path.get("fill") == "#f08"


def test_captions_are_drawn_and_escaped() -> None:
    one = torch.zeros(1, 1, 1)
    root = drawn(Picture(one, ("cat <b> 0.91", "dog 0.40")), Picture(one, ("x",)))
    assert [text.text for text in root.iter("text")] == ["cat <b> 0.91", "dog 0.40", "x"]
    assert root.get("aria-label") == "a <row>"
    # Nothing is loaded: a page forbids it.
    assert "href" not in Xml.tostring(root, encoding="unicode")
