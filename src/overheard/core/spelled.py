"""Text from outside that can do nothing but be read."""


def spelled_out(text: str) -> str:
    r"""The same, each character that does not print spelled out; so are ends of lines.

    >>> spelled_out("a\x1b[31m b")
    'a\\x1b[31m b'
    """
    return "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
