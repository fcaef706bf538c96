"""Hooks of the documentation site (mkdocs): links from a page to source files.

Pages link to files of the repository (`../examples/tools.json`) so that they can be followed where the repository is
read. The site has no such files: with `repo_url` the link leads to the repository, without it the text stays alone.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath
from typing import Any

OUTSIDE = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>(?:\.\./)+[^)\s]+)\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """The page's text, with each link that leaves the documentation's folder changed."""
    folder = PurePosixPath("docs") / PurePosixPath(page.file.src_uri).parent

    def changed(link: re.Match[str]) -> str:
        path = posixpath.normpath(str(folder / link["target"]))
        return link[0] if path.startswith("docs/") else _elsewhere(link["text"], path, config.repo_url)

    return OUTSIDE.sub(changed, markdown)


def _elsewhere(text: str, path: str, repository: str | None) -> str:
    return f"[{text}]({repository.rstrip('/')}/blob/main/{path})" if repository else text
