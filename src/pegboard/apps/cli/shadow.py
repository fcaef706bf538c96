"""`pegboard shadow`: what filtering would have cost and saved."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples

EXAMPLES = examples(
    "What would have been saved, and which calls would have been lost?",
    "pegboard shadow",
    "The tools that are missed most, for a program to read",
    "pegboard shadow --tools 50 --json",
    "Begin anew",
    "pegboard shadow --forget",
)


def shadow(
    config: Configs = None,
    tools: Annotated[int, typer.Option("--tools", min=0, help="So many tools, those that were missed most.")] = 10,
    forget: Annotated[bool, typer.Option("--forget", help="Remove what was counted.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what filtering would have done to requests in the shadow: tokens saved, and calls of tools lost.

    With shadow = true in a policy of the LLM gateway requests pass as they came. A call by the model of a tool that
    would have been removed is a miss; recall is the share of the calls that are none, with its 95% interval. Each
    upstream, model, key and policy is counted for itself, on this machine.
    """
    from pegboard.apps.cli import output, shadowed
    from pegboard.apps.cli.configs import own_files
    from pegboard.settings import load_settings
    from pegboard.stores.shadow import FILE, ShadowCounts

    counts = ShadowCounts(load_settings(config or own_files()).state_dir / FILE)
    if forget:
        removed = counts.forget()
        if as_json:
            output.print_json({"removed": removed})
        else:
            sys.stdout.write(f"Removed: the counts of {removed:,} requests.\n")
    elif as_json:
        output.print_json(shadowed.payload(counts.read(), tools))
    else:
        shadowed.show(counts.read(), tools)
