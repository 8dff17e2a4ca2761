from overheard.archive.spelled import LONGEST, spelled


def test_what_prints_stays_as_it_is() -> None:
    assert spelled("client/3: ä, 漢, [red]") == "client/3: ä, 漢, [red]"


def test_nothing_is_left_that_a_terminal_would_obey() -> None:
    text = "".join(map(chr, [*range(32), 127, 0x85, 0x202E, 0xD800, 0xFEFF]))
    assert spelled(text).isprintable()
    assert spelled("a\x1b\n") == r"a\x1b\n"


def test_of_a_long_text_the_beginning_and_the_mend_at_its_end_are_told() -> None:
    told = spelled("begin " + "x" * 10**6 + ": mend it")
    assert len(told) == LONGEST + len(" ... ")
    assert told.startswith("begin x")
    assert told.endswith("x: mend it")
