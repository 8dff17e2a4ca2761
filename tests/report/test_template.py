import pytest
from jinja2 import UndefinedError

from overheard.report.template import template

PAGES = ("page.html.j2", "experiment_page.html.j2")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_is_told_too_little_is_refused(name: str) -> None:
    with pytest.raises(UndefinedError):
        template(name).render()


@pytest.mark.parametrize("name", PAGES)
def test_every_page_escapes_what_it_is_told(name: str) -> None:
    assert template(name).environment.autoescape is True
