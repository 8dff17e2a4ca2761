"""Lists and texts come out on the site as they are meant."""

from website.site_markdown import cell, indent_lists, plain, sentence, table


def test_a_nested_list_is_indented_by_four_columns():
    assert indent_lists("- a\n  - b\n    more of b\n- c\n") == (
        "- a\n    - b\n        more of b\n- c\n"
    )


def test_numbered_items_and_their_paragraphs_too():
    assert indent_lists("1. a\n\n   more\n2. b\n") == "1. a\n\n    more\n2. b\n"


def test_a_list_after_a_paragraph_gets_an_empty_line():
    assert indent_lists("Text:\n- a\n- b\n") == "Text:\n\n- a\n- b\n"
    assert indent_lists("- a\n  over two\n- b\n") == "- a\n    over two\n- b\n"


def test_code_stays_as_it_is():
    code = "```sh\n- no item\n  - none\n```\n"
    assert indent_lists(code) == code
    assert indent_lists("- a\n  ```sh\n  run\n  ```\n") == "- a\n    ```sh\n    run\n    ```\n"


def test_texts_hold_no_markup_but_code_does():
    assert plain("a < b * c `<x>`") == r"a &lt; b \* c `<x>`"
    assert plain("    x < y") == "    x < y"


def test_a_table_has_its_bars_escaped():
    assert cell("a |\n  b") == r"a \| b"
    assert table(("x", "y"), [("1", "2")]) == "| x | y |\n| --- | --- |\n| 1 | 2 |\n"


def test_a_sentence_begins_and_ends_as_one():
    assert sentence("the data set") == "The data set."
    assert sentence("Done.") == "Done."
    assert sentence("") == ""
