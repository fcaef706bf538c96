"""What `pegboard init` did, or would do, for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tomli_w

from pegboard.apps.cli.output import plain, stdout


def show(made: Mapping[str, Any]) -> None:
    say = _speaker()
    done = made["written"]
    for target in made["targets"]:
        if target["new"]:
            say(f"{'Written to' if done else 'Would be written to'} {target['file']}:\n")
            say(tomli_w.dumps({"servers": target["new"]}))
    for change in made["clients"]:
        say(f"{change['client']}: {change['file']}")
        for each in change["moved"]:
            left = f" (not carried over: {', '.join(each['not_carried_over'])})" if each["not_carried_over"] else ""
            say(f"  {each['server']}{'' if each['as'] == each['server'] else ' as ' + each['as']}{left}")
        say(f"  {'now starts' if done else 'would start'} {json.dumps(change['entry'], ensure_ascii=False)}")
        say(f"  {'kept' if done else 'would be kept'} as {change['backup']}\n")
    for stays in made["stays"]:
        say(f"Stays in {stays['file']}: {stays['server']!r}. {stays['reason']}")
    for note in made["notes"]:
        say(note)
    if not made["clients"]:
        say("Nothing is left to move.")
    elif done:
        say("Start the clients again; `pegboard doctor` checks the servers, `pegboard init --undo` takes it back.")
    else:
        say("Nothing was changed. `pegboard init --write` does it.")


def show_undone(made: Mapping[str, Any]) -> None:
    say = _speaker()
    for each in made["undone"]:
        if each["as_before"]:
            say(f"{each['client']}: {each['file']} is as it was before.")
            continue
        say(f"{each['client']}: {each['file']} was edited since. Its edits stay; put back: {_list(each['put_back'])}.")
        if each["superseded"]:
            say(f"  The client has another {_list(each['superseded'])} now; the former stands in the backup.")
        say(f"  Kept: {_list(each['backups'])}")
    for note in made["notes"]:
        say(note)
    say("pegboard.toml stays as it is." if made["undone"] else "There is nothing to undo.")


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def _speaker() -> Callable[[str], None]:
    console = stdout()
    return lambda text: console.print(plain(text), soft_wrap=True)
