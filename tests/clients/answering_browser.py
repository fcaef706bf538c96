"""A browser for $BROWSER that answers a consent page at once. Arguments: allow or refuse, and the address."""

from __future__ import annotations

import sys

import httpx2


def main(answer: str, url: str) -> None:
    with httpx2.Client(follow_redirects=True, timeout=60) as browser:
        page = browser.get(url)
        if "<form" in page.text:
            browser.post(page.url, data={"answer": answer})


if __name__ == "__main__":
    main(*sys.argv[1:])
