"""`python -m website`: writes the pages that MkDocs or Zensical then builds to a site."""

from website.repository_files import ROOT
from website.site_pages import write_site_pages

if __name__ == "__main__":
    write_site_pages(ROOT / "build" / "pages")
