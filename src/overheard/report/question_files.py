"""Files in the folders of questions: their terms, and what standards say on their findings."""

import tomllib
from importlib.resources import files
from typing import Any

from overheard.plans.registries import questions


# Any: a file may have any content.
def read_question_files(name: str) -> tuple[dict[str, Any], ...]:
    """Return the content of the TOML files of this name in the folders of all questions.

    The folder is the package of the module that defines the question.
    """
    modules = (type(question).__module__ for question in questions().values())
    folders = dict.fromkeys(module.rpartition(".")[0] for module in modules)
    return tuple(
        tomllib.loads(files(folder).joinpath(name).read_text(encoding="utf-8"))
        for folder in folders
        if folder and files(folder).joinpath(name).is_file()
    )
