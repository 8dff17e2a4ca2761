"""Links out of docs/ lead to the same file on the site."""

from website.repository_files import rewrite_links


def test_a_folder_of_an_example_leads_to_its_page():
    assert rewrite_links("[app](../examples/flower)", "flower.md") == (
        "[app](examples/flower/README.md)"
    )


def test_a_plan_leads_to_its_file_and_anchors_stay():
    assert rewrite_links("[p](../plans/policy.toml)", "check.md") == "[p](plans/policy.toml)"
    assert rewrite_links("[p](../examples/plugin/README.md#x)", "check.md") == (
        "[p](examples/plugin/README.md#x)"
    )


def test_an_example_leads_back_to_the_docs():
    assert rewrite_links("[e](../../docs/epsilon.md)", "examples/flower/README.md") == (
        "[e](../../epsilon.md)"
    )


def test_links_within_a_folder_and_to_the_web_stay():
    for text in (
        "[e](epsilon.md)",
        "[t](https://toml.io)",
        "[b](#below)",
        "[r](models.md#own)",
    ):
        assert rewrite_links(text, "flower.md") == text
    assert rewrite_links("[p](plan.toml)", "examples/flower/README.md") == "[p](plan.toml)"
