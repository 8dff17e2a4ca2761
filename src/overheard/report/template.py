"""Loading of page templates, in which all names are escaped."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


@cache
def load_template(name: str) -> Template:
    """Load the template file of this name from this folder."""
    return Environment(
        loader=PackageLoader("overheard", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template(name)
