"""The first decision of a process over a small board: `python -m pegboard_bench.board.warm_process TOOLS CACHE`.

Prints JSON: milliseconds of `import pegboard`, and seconds from before it until a decision, by the processor and by the
clock. TOOLS is a file of definitions, CACHE a folder.
"""

import json
import sys
import time


def main(tools: str, cache: str) -> None:
    """Decide once."""
    began, clock = time.process_time(), time.perf_counter()
    import pegboard

    found = {"import_cpu_ms": (time.process_time() - began) * 1000, "import_ms": (time.perf_counter() - clock) * 1000}
    with open(tools, encoding="utf-8") as file:  # noqa: PTH123 - pathlib would be imported before it is measured
        board = pegboard.Board(json.load(file), cache_dir=cache, state_dir=cache, encoder_threads=1)
    board.route_now("create an issue in the tracker for the crash")
    found |= {"decision_cpu_s": time.process_time() - began, "decision_s": time.perf_counter() - clock}
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
