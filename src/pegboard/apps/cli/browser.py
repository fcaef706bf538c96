"""The browser of whoever is at the terminal."""

from __future__ import annotations

import webbrowser
from threading import Thread


def open_page(url: str, seconds: float) -> bool:
    """False if no browser could be started within this time. One that runs in the terminal, such as w3m, returns only
    when it is closed: nobody waits for that, nor does the end of this process."""
    said: list[bool] = []
    opening = Thread(target=lambda: said.append(webbrowser.open(url)), daemon=True)
    opening.start()
    opening.join(seconds)
    return all(said)
