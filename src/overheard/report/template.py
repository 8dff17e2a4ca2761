"""Loading of page templates, in which all names are escaped."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup


@cache
def load_template(name: str, package: str = "overheard.report") -> Template:
    """Load the template file of this name from a package, or else from this one.

    Templates get the page's style sheet, its script, and a security policy that allows these
    two and nothing else: `style`, `script` and `policy`.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(one, "") for one in (package, "overheard.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = _read("page.css"), _read("page.js")
    policy = (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    environment.globals.update(style=style, script=script, policy=Markup(policy))
    return environment.get_template(name)


def _read(name: str) -> Markup:
    return Markup(files("overheard.report").joinpath(name).read_text(encoding="utf-8"))


def _source(text: str) -> str:
    """Return the name by which a security policy allows exactly this text."""
    digest = b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
