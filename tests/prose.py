"""Reads the prose of this project: sentences of pages, docstrings, comments, messages."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

SOURCE = ROOT / "src" / "overheard"

PLACEHOLDER = "X"
"""What stands for a value that is filled in when the program runs."""

ABBREVIATIONS = re.compile(
    r"\b(e\.g|i\.e|et al|vs|cf|[Ee]qs?|[Ss]ecs?|[Ff]igs?|approx|resp|etc|pp?|[Nn]o|vol)\."
)

END = re.compile(r"(?<=[.!?])[\"”’')\]*_]*\s+(?=[\"“‘'(\[`*_]*[A-Z0-9]|[\"“`]\w)")

WORD = re.compile(r"[^\W\d_]")


def sentences(text: str) -> list[str]:
    """The sentences of one paragraph."""
    text = ABBREVIATIONS.sub(lambda found: found[1], " ".join(text.split()))
    return [sentence for sentence in END.split(text) if WORD.search(sentence)]


def count_words(sentence: str) -> int:
    """How many of its words have a letter. Code in backticks counts as one word."""
    sentence = re.sub(r"`[^`]*`", "code", sentence)
    return sum(bool(WORD.search(word)) for word in re.split(r"[\s—–]+", sentence))


def pages() -> list[Path]:
    """Every page of documentation."""
    found = [ROOT / "README.md", ROOT / "CHANGELOG.md"]
    for folder in ("docs", "examples"):
        found += sorted((ROOT / folder).rglob("*.md"))
    return found


def markdown_paragraphs(text: str) -> Iterator[str]:
    """The paragraphs, items, headings and cells of a page, without code blocks and links."""
    text = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        begins = re.match(r"\s*([-*+] |\d+\. |#+ |>|\|)", line)
        if begins or not line.strip():
            if block:
                yield " ".join(block)
            block = []
        if line.lstrip().startswith("|"):
            yield from re.split(r"(?<!\\)\|", line.strip().strip("|"))
        elif line.strip():
            block.append(re.sub(r"^\s*([-*+] |\d+\. |#+ |> ?)", "", line).strip())


def docstring_paragraphs(text: str) -> Iterator[str]:
    """The paragraphs and entries of a docstring, without examples that run."""
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        bare = line.strip()
        begins = re.match(r"(\*?\*?\w+( \(.*\))?: |[-*] |\w+:$|[├└│])", bare)
        if begins or not bare or bare.startswith((">>>", "...")):
            if block:
                yield " ".join(block)
            block = []
        if bare and not bare.startswith((">>>", "...")) and not re.fullmatch(r"\w+:", bare):
            block.append(
                re.sub(r"^(\*?\*?\w+( \(.*\))?: |[-*] )", "", bare) if begins else bare
            )


def python_prose(path: Path) -> Iterator[tuple[int, str]]:
    """The paragraphs of a file: docstrings, comments and messages, each with its line."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    docstrings = set()
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            docstrings.add(id(value))
            for paragraph in docstring_paragraphs(value.value):
                yield node.lineno, paragraph
    inner = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    read_elsewhere = docstrings | inner
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            message = "".join(
                part.value if isinstance(part, ast.Constant) else PLACEHOLDER
                for part in node.values
            )
            yield node.lineno, message
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in read_elsewhere
            and len(node.value.split()) > 2
        ):
            for paragraph in node.value.split("\n\n"):
                yield node.lineno, paragraph
    yield from comments(text)


def comments(text: str) -> Iterator[tuple[int, str]]:
    """The comments of Python code; consecutive comment lines are one paragraph."""
    block: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, column = token.start
        alone = not token.line[:column].strip()
        if block and not (alone and line == last + 1):
            yield first, " ".join(block)
            block = []
        if not block:
            first = line
        block.append(token.string.lstrip("#: "))
        last = line
    if block:
        yield first, " ".join(block)


def toml_comments(path: Path) -> Iterator[tuple[int, str]]:
    """The comments of a plan; those that follow each other are one."""
    block: list[str] = []
    first = 0
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], 1):
        alone = line.strip().startswith("#")
        if block and not alone:
            yield first, " ".join(block)
            block = []
        if alone:
            first = first if block else number
            block.append(line.strip().lstrip("# "))
        elif "  #" in line:
            yield number, line.split("  #", 1)[1].strip()


def plans() -> list[Path]:
    """Every plan and policy that is there to read."""
    return [*sorted((ROOT / "plans").glob("*.toml")), *sorted(ROOT.glob("examples/*/*.toml"))]


def all_prose() -> Iterator[tuple[str, str]]:
    """Every paragraph that a reader may meet, each with its place."""
    for page in pages():
        for paragraph in markdown_paragraphs(page.read_text(encoding="utf-8")):
            yield str(page.relative_to(ROOT)), paragraph
    for path in sorted(SOURCE.rglob("*.py")):
        for line, paragraph in python_prose(path):
            yield f"{path.relative_to(ROOT)}:{line}", paragraph
    for path in plans():
        for line, paragraph in toml_comments(path):
            yield f"{path.relative_to(ROOT)}:{line}", paragraph
    for path in sorted(SOURCE.rglob("*.j2")):
        text = re.sub(
            r"\{[%#].*?[%#]\}", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL
        )
        text = re.sub(r"\{\{.*?\}\}", PLACEHOLDER, text, flags=re.DOTALL)
        for paragraph in re.split(r"<[^>]*>", text):
            yield str(path.relative_to(ROOT)), paragraph
