"""Hooks of mkdocs: pages that lie beside `docs`, and links as the repository has them."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = "https://github.com/dbt-mzs3/dbt-mzs3/blob/main"
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""The pages beside `docs`, and what the site calls them."""
_LINK = re.compile(r"(?<=\]\()(?!#|[a-z]+:)([^)\s#]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages beside `docs`."""
    for path, name in PAGES.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links lead to the site's pages; those to other files of the repository lead there."""
    folder = Path(page.file.abs_src_path).parent.relative_to(ROOT).as_posix()
    here = posixpath.dirname(page.file.src_uri)

    def link(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, found[1]))
        if path in PAGES:
            in_site = PAGES[path]
        elif path.startswith("docs/"):
            in_site = path.removeprefix("docs/")
        else:
            return f"{REPOSITORY}/{path}"
        return posixpath.relpath(in_site, here or ".")

    return _LINK.sub(link, markdown)
