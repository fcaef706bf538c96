"""How users say things: requests for tools, what they fill in, and what stands around them.

The requests of real tools are in `requests.txt`; those of made tools are put together here, from words that their
descriptions do not use.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files

from pegboard.catalog import Catalog
from pegboard.model import ToolId

Asks = Mapping[ToolId, Sequence[str]]
"""The requests that a tool serves, with words in braces to be filled in."""
Same = Mapping[ToolId, frozenset[ToolId]]
"""For a tool with twins: all that serve the same requests, itself among them."""

REQUESTS = "requests.txt"
SLOT = re.compile(r"\{(\w+?)2?\}")
FILLS: Mapping[str, tuple[str, ...]] = {
    "repo": ("acme/shop", "nimbus-api", "our web client", "the billing repo", "acme/infra", "the docs repository"),
    "issue": ("#412", "issue 88", "#1207", "bug 63", "#95", "issue 310"),
    "pr": ("PR 77", "pull request 512", "#940", "PR 31", "pull request 8"),
    "user": ("Maria", "Jonas", "@kim", "our new intern", "Priya", "@oleg"),
    "channel": ("#support", "#releases", "#general", "#outages", "#design", "the sales channel"),
    "file": ("notes.md", "config.yaml", "src/app.py", "report.csv", "Makefile", "settings.json"),
    "folder": ("~/projects", "./build", "Downloads", "data/raw", "docs/old", "the archive"),
    "day": ("since Monday", "last week", "yesterday", "in October", "this month", "on Friday"),
    "ticket": ("SHOP-12", "OPS-341", "WEB-7", "PAY-208", "DATA-55", "OPS-19"),
    "project": ("SHOP", "OPS", "WEB", "PAY", "DATA", "our platform project"),
    "collection": ("orders", "users", "events", "invoices", "sessions", "products"),
    "url": ("https://example.org/news", "the vendor's blog", "https://docs.acme.io", "that changelog page"),
    "board": ("the platform board", "board 14", "our kanban board", "the mobile board"),
    "sprint": ("sprint 31", "the current sprint", "sprint 8", "the next sprint"),
    "name": ("Atlas", "Nimbus", "number 17", '"spring"', "Borealis", "the one of last week", "K-204"),
}
LEADS = ("", "", "", "", "Please: ", "Hi! ", "Quick one: ", "Could you help? ", "For the release, ", "Next, ")
TAILS = ("", "", "", "", "", " Thanks!", " It is rather urgent.", " Keep it short.", " I need it for the stand-up.")
JOINTS = ("; then ", ", and after that ", ". Then ", "; also, ", ". Once that is done: ")
AGAIN = ("and {}?", "now the same for {}", "what about {}?", "do it for {} too", "once more, with {}")

USER_VERBS: Mapping[str, tuple[str, ...]] = {
    "create": ("set up a new {} called {{name}}", "I need another {}, {{name}}", "add a {} for {{name}}"),
    "list": ("which {}s do we have?", "show me all {}s", "give me an overview of our {}s"),
    "get": ("what do we know about the {} {{name}}?", "open the {} {{name}}", "tell me about {} {{name}}"),
    "update": ("change the {} {{name}}", "correct the {} {{name}}", "the {} {{name}} is out of date, fix that"),
    "delete": ("get rid of the {} {{name}}", "throw away {} {{name}}", "we no longer need the {} {{name}}"),
    "read": ("what is in the {} {{name}}?", "show what the {} {{name}} holds", "print the {} {{name}}"),
    "write": ("save this into the {} {{name}}", "put my text into the {} {{name}}", "fill the {} {{name}} anew"),
    "move": ("rename the {} {{name}}", "put the {} {{name}} elsewhere", "the {} {{name}} belongs under old, shift it"),
    "search": ("find the {} about {{name}}", "where is a {} on {{name}}?", "look for a {} that mentions {{name}}"),
    "fetch": ("download the {} {{name}}", "get me the {} at {{name}}", "load the {} {{name}}"),
    "extract": ("pull the numbers out of the {} {{name}}", "which facts are in the {} {{name}}?", "parse {} {{name}}"),
    "screenshot": ("take a photo of the {} {{name}}", "capture how the {} {{name}} looks", "snap the {} {{name}}"),
    "archive": ("keep a copy of the {} {{name}}", "preserve the {} {{name}}", "put the {} {{name}} into safe keeping"),
}
USER_NOUNS: Mapping[str, tuple[str, ...]] = {
    "repository": ("repo", "code base"),
    "branch": ("branch", "line of development"),
    "issue": ("bug report", "issue"),
    "pull_request": ("PR", "change request"),
    "release": ("release", "published build"),
    "label": ("tag", "label"),
    "file": ("document on my disk", "file"),
    "directory": ("folder",),
    "table": ("table", "db table"),
    "row": ("record", "db entry"),
    "index": ("index", "db index"),
    "view": ("view", "saved query"),
    "message": ("post", "chat message"),
    "channel": ("channel", "chat room"),
    "user_group": ("mention group", "@group"),
    "page": ("web page", "site"),
    "image": ("picture", "photo"),
    "ticket": ("ticket", "work item"),
    "sprint": ("sprint", "iteration"),
    "board": ("board", "kanban wall"),
    "worklog": ("booked time", "time sheet entry"),
    "comment": ("note", "remark"),
    "version": ("fix version", "planned version"),
    "epic": ("epic", "big topic"),
}
PLACES: Mapping[str, str] = {
    "github": "on GitHub",
    "filesystem": "on this machine",
    "database": "in the database",
    "slack": "on Slack",
    "web": "on the web",
    "jira": "in Jira",
}


def recorded(catalog: Catalog) -> tuple[Asks, Same]:
    """The requests of `requests.txt` whose tools this catalog has."""
    asks: dict[ToolId, Sequence[str]] = {}
    same: dict[ToolId, frozenset[ToolId]] = {}
    for line in (files(__package__) / REQUESTS).read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        names, _, requests = line.partition(": ")
        twins = [ToolId(*name.strip().split("/")) for name in names.split("=")]
        there = [tool for tool in twins if tool in catalog]
        if there:
            asks[there[-1]] = [request.strip() for request in requests.split("|")]
            same[there[-1]] = frozenset(there)
    return asks, same


def made(catalog: Catalog) -> tuple[Asks, Same]:
    """Three requests a tool; every second time the user says where."""
    return {tool.id: [_made(tool.id, number) for number in range(3)] for tool in catalog.tools}, {}


def _made(tool: ToolId, number: int) -> str:
    verb, _, noun = tool.name.partition("_")
    nouns = USER_NOUNS.get(noun, (noun.replace("_", " "),))
    request = USER_VERBS[verb][number].format(nouns[number % len(nouns)])
    place = PLACES.get(tool.server, "")
    return f"{request} {place}".strip() if (len(tool.name) + number) % 2 else request


def filled(request: str, choose: random.Random) -> tuple[str, str]:
    """The request with its words filled in, and the last of those, by which a follow-up names another."""
    said = ""

    def fill(match: re.Match[str]) -> str:
        nonlocal said
        said = choose.choice(FILLS[match[1]])
        return said

    return SLOT.sub(fill, request), said


def message(requests: Sequence[str], choose: random.Random) -> str:
    """One or several requests as one message of a user."""
    text = requests[0]
    for request in requests[1:]:
        text += choose.choice(JOINTS) + request
    lead, tail = choose.choice(LEADS), choose.choice(TAILS)
    end = "." if tail and not text.endswith("?") else ""
    return f"{lead}{text}{end}{tail}"


def again(request: str, choose: random.Random) -> tuple[str, str] | None:
    """An elliptical follow-up and what it stands for; None where the request has nothing to vary."""
    slots = SLOT.findall(request)
    if not slots:
        return None
    other = choose.choice(FILLS[slots[-1]])
    whole, _ = filled(request[: request.rindex("{")] + "\0" + request[request.rindex("}") + 1 :], choose)
    return choose.choice(AGAIN).format(other), whole.replace("\0", other)
