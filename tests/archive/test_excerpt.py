from overheard.archive.excerpt import MAX_LENGTH, printable_excerpt


def test_printable_text_is_unchanged() -> None:
    assert printable_excerpt("client/3: ä, 漢, [red]") == "client/3: ä, 漢, [red]"


def test_control_characters_are_escaped() -> None:
    text = "".join(map(chr, [*range(32), 127, 0x85, 0x202E, 0xD800, 0xFEFF]))
    assert printable_excerpt(text).isprintable()
    assert printable_excerpt("a\x1b\n") == r"a\x1b\n"


def test_beginning_and_end_of_a_long_text_are_kept() -> None:
    excerpt = printable_excerpt("begin " + "x" * 10**6 + ": fix it")
    assert len(excerpt) == MAX_LENGTH + len(" ... ")
    assert excerpt.startswith("begin x")
    assert excerpt.endswith("x: fix it")
