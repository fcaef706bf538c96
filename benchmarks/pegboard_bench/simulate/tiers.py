"""Which of the two price tiers of EHRR section V a tool is in, by the words of its definition."""

from __future__ import annotations

import re
from enum import Enum

from pegboard.model import Tool
from pegboard.retrieval.words import split_identifier

GROUNDING = re.compile(
    r"""\b(?:
        web[ ](?:search|content|sites?|pages?) | search(?:es)?[ ]the[ ]web | search[ ]engine | websites? | webpages?
        | duckduckgo | bing | internet | scrap\w+ | crawl\w* | sitemaps? | deep[ ]research
        | geocod\w+ | geograph\w+ | latitude | nearby | neighbou?rhoods? | directions | commut\w+
        | meeting[ ]point | weather | news | tickets
    )\b | 必应 | 网页 | 新闻 | 火车票 | 车票""",
    re.IGNORECASE | re.VERBOSE,
)
"""The paper's examples, web search and geospatial grounding, and what else asks for the state of the world."""


class Tier(Enum):
    """``LOW`` is computing and looking up, ``HIGH`` grounding in the web or in places."""

    LOW = "low"
    HIGH = "high"


def tier(tool: Tool) -> Tier:
    """
    >>> from pegboard.model import ToolId
    >>> tier(Tool(id=ToolId("a", "web_search"), description="Finds pages")).value
    'high'
    """
    said = f"{split_identifier(tool.name)} {tool.description}".replace("_", " ")
    return Tier.HIGH if GROUNDING.search(said) else Tier.LOW
