"""Records a terminal as docs/assets/terminal.svg: what tools cost, which of them one request gets, and how to install.

    make demo && python scripts/record_terminal.py

Runs the real commands on the servers of `make demo`. The picture is an animated SVG without a script: each command
appears after the one before it. Readers who asked their system for less motion see all of it at once.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "assets" / "terminal.svg"
COLUMNS = 112
COMMANDS = (
    "pegboard audit --config mcp.json",
    'pegboard route --config mcp.json "What time is it in Tokyo right now?" --k 3',
)
FOLDER = ROOT / ".demo"
SECONDS_A_COMMAND = 3.0
"""Before the next one appears."""
THEME = TerminalTheme(
    (13, 17, 23),
    (230, 237, 243),
    [
        (72, 79, 88),
        (255, 123, 114),
        (63, 185, 80),
        (210, 153, 34),
        (88, 166, 255),
        (188, 140, 255),
        (57, 197, 207),
        (177, 186, 196),
    ],
)
LINE = re.compile(r'clip-path="url\(#recording-line-(\d+)\)"')


def main() -> None:
    if not (FOLDER / "mcp.json").is_file():
        sys.exit("There are no servers to record with. Run `make demo` first.")
    console = Console(record=True, width=COLUMNS, file=Path(os.devnull).open("w"), force_terminal=True)  # noqa: SIM115
    starts: list[int] = []
    lines = 0
    for command in COMMANDS:
        starts.append(lines)
        shown = Text.assemble(("$ ", "bold green"), (command, "bold"))
        printed = Text.from_ansi(_printed(command).rstrip())
        console.print(shown)
        console.print(printed, no_wrap=True, crop=True)
        console.print()
        lines += 2 + len(printed.split("\n", allow_blank=True))
    svg = console.export_svg(title="pegboard", theme=THEME, unique_id="recording")
    PICTURE.write_text(_animated(svg, starts))
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}\n")


def _printed(command: str) -> str:
    """What the command prints to a terminal; its progress left out. Exits where it fails."""
    program = str(Path(sys.executable).with_name("pegboard"))
    environment = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    done = subprocess.run(
        [program, *shlex.split(command)[1:]], cwd=FOLDER, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"`{command}` failed with {done.returncode}:\n{done.stderr}")
    return done.stdout


def _animated(svg: str, starts: list[int]) -> str:
    """Each line appears with its command; the first is there from the start."""
    style = "@keyframes recording-appear { from { opacity: 0 } to { opacity: 1 } }\n"
    for number in range(1, len(starts)):
        style += f".recording-step{number} {{ animation: recording-appear .3s {number * SECONDS_A_COMMAND:g}s both }}\n"
    style += '@media (prefers-reduced-motion: reduce) { [class*="recording-step"] { animation: none } }\n'

    def stepped(found: re.Match[str]) -> str:
        line = int(found[1])
        step = sum(line >= start for start in starts) - 1
        return found[0] if step == 0 else f'{found[0]} data-step="recording-step{step}"'

    marked = LINE.sub(stepped, svg)
    marked = re.sub(r'class="([^"]*)"([^>]*) data-step="([^"]*)"', r'class="\1 \3"\2', marked)
    return marked.replace("</style>", f"{style}</style>", 1)


if __name__ == "__main__":
    main()
