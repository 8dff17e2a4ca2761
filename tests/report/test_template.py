import pytest
from jinja2 import UndefinedError

from overheard.report.template import load_template

PAGES = ("page.html.j2", "experiment_page.html.j2")


@pytest.mark.parametrize("name", PAGES)
def test_refuses_a_page_with_missing_variables(name: str) -> None:
    with pytest.raises(UndefinedError):
        load_template(name).render()


@pytest.mark.parametrize("name", PAGES)
def test_every_page_escapes_its_variables(name: str) -> None:
    assert load_template(name).environment.autoescape is True
