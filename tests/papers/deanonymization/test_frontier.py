from overheard.papers.deanonymization.frontier import Point, best_arms, frontier_plate

BARE = Point("none", 0.8, 1.0)
GOOD = Point("good", 0.2, 0.9)
BAD = Point("bad", 0.3, 0.8)


def test_an_arm_that_another_beats_both_ways_is_no_best_one() -> None:
    assert best_arms([BARE, GOOD, BAD]) == ("none", "good")


def test_an_arm_is_judged_by_the_strongest_attacker_upon_it() -> None:
    # Against one who adapts the good arm leaves 0.9, more than none at all at a lower utility.
    assert best_arms([BARE, GOOD, BAD, Point("good", 0.9, 0.9)]) == ("none", "bad")


def test_the_plate_names_the_best_and_has_a_line_an_arm_and_attacker() -> None:
    plate = frontier_plate("Frontier", {"shadow": [BARE, GOOD, BAD], "adaptive": [GOOD]})
    assert "none, good" in plate.note
    assert len(plate.table.lines) == 4
    assert "good" in plate.panels[0].drawing
