"""Files in the folders of questions: their terms, and what standards say on their findings."""

import tomllib
from typing import Any

from overheard.core.plugin_registry import plugin_folders


# Any: a file may have any content.
def read_question_files(name: str) -> tuple[dict[str, Any], ...]:
    """Return the content of the TOML files of this name in the folders of all questions.

    A folder is that of the module that defines the question, which is not imported.
    """
    paths = (
        folder / name
        for folder in dict.fromkeys(plugin_folders("overheard.questions", "questions"))
    )
    return tuple(
        tomllib.loads(path.read_text(encoding="utf-8")) for path in paths if path.is_file()
    )
