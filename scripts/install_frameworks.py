"""Installs thirteen agent frameworks, each in an environment of its own with Pegboard, for the tests of their control
tools and of their adapters.

    python scripts/install_frameworks.py [FOLDER]        # default .demo/frameworks

Only what an agent needs that talks to an OpenAI-compatible upstream. A second run installs nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from environments import from_pypi, say, with_packages

UV = "uv==0.13.9"
"""Thirteen environments take a minute with it; one after the other with pip they would take a quarter of an hour."""
PACKAGES = {
    "pydantic-ai": ("pydantic-ai-slim[openai]==2.68.0",),
    "openai-agents": ("openai-agents==0.24.0",),
    "langchain": ("langchain==1.4.7", "langchain-openai==1.7.3"),
    "langgraph-supervisor": ("langgraph-supervisor==0.0.31", "langchain-openai==1.7.3"),
    "smolagents": ("smolagents[openai]==1.26.0",),
    "autogen": ("autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5"),
    "agent-framework": (
        "agent-framework-core==1.23.0",
        "agent-framework-openai==1.17.0",
        "agent-framework-orchestrations==1.4.0",
    ),
    "google-adk": ("google-adk==2.13.0",),
    "llama-index": ("llama-index-core==0.14.25", "llama-index-llms-openai==0.8.3"),
    "crewai": ("crewai==1.15.30",),
    "strands": ("strands-agents[openai]==1.62.0",),
    "haystack": ("haystack-ai==3.4.0",),
    "dspy": ("dspy==3.4.1",),
}
"""Environment to requirements."""
PEGBOARD = ("--editable", str(Path(__file__).resolve().parents[1]))
"""Installed together with each framework: versions that do not fit together are an error."""


def install(folder: Path) -> bool:
    """Everything that can be installed here; whether that was everything."""
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    uv = from_pypi(folder / "uv", UV, "uv")
    done = {
        name: uv is not None and with_packages(folder / name, (*each, *PEGBOARD), uv=uv)
        for name, each in PACKAGES.items()
    }
    if missing := [name for name, installed in done.items() if not installed]:
        say(f"going on without {', '.join(missing)}")
    return not missing


if __name__ == "__main__":
    sys.exit(not install(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo/frameworks")))
