"""Opens the templates of pages, in which every name is escaped."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


@cache
def template(name: str) -> Template:
    """The template in the file of this name, beside this one."""
    return Environment(
        loader=PackageLoader("overheard", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template(name)
