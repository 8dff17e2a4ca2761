"""All pages that are written from the code when the site is built."""

from website.command_page import command_page
from website.glossary_page import glossary_page
from website.paper_page import paper_page
from website.plan_pages import plan_page, policy_page
from website.plugin_pages import plugin_pages
from website.python_page import python_page


def generated_pages() -> dict[str, str]:
    """Return the Markdown of every such page, by its file name."""
    return {
        "plan-reference.md": plan_page(),
        "policy-reference.md": policy_page(),
        "commands.md": command_page(),
        "api.md": python_page(),
        "glossary.md": glossary_page(),
        "papers.md": paper_page(),
        **plugin_pages(),
    }
