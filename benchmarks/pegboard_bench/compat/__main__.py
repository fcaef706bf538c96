"""`python -m pegboard_bench.compat`: pip's resolutions of Pegboard beside forty packages for agents."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from packaging.utils import canonicalize_name

from pegboard_bench import results
from pegboard_bench.compat.core import build_wheel, empty_environment, measured
from pegboard_bench.compat.packages import PACKAGES
from pegboard_bench.compat.resolution import Resolution, conflicts, downgraded, refusals, resolve
from pegboard_bench.page import write_page


def table_of(alone: Mapping[str, Resolution], beside: Mapping[str, Resolution]) -> dict[str, dict[str, Any]]:
    """By package: its newest version, whether pip refused it, and what became older beside Pegboard."""
    return {
        name: {
            "version": alone[name].versions.get(canonicalize_name(name), ""),
            "packages": len(alone[name].versions),
            "refused_alone": alone[name].refused,
            "refused": beside[name].refused,
            "added": len(beside[name].versions.keys() - alone[name].versions.keys()),
            "downgraded": [
                [each.package, each.alone, each.beside]
                for each in (() if beside[name].refused else downgraded(alone[name], beside[name]))
            ],
        }
        for name in alone
    }


def core_again(core: Mapping[str, float], out: Path, page: Path | None) -> int:
    """Writes the figures of the library alone, and leaves what else the file says."""
    said = json.loads((out / "compat.json").read_text("utf-8"))
    others = said["tables"].get("others_of") or {each: said[each] for each in ("commit", "date")}
    tables, figures = said["tables"] | {"others_of": others}, said["figures"] | core
    results.write("compat", command="make bench-compat", seed=0, figures=figures, tables=tables, folder=out)
    if page is not None:
        write_page(page, out)
    return 0


def main() -> int:
    """0 if no package is refused or made older because of Pegboard."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--package", action="append", help="only these; may be repeated")
    parser.add_argument("--core", action="store_true", help="measure the library alone, and keep what else was found")
    parser.add_argument("--at-once", type=int, default=2, help="resolutions at once")
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    names = args.package or PACKAGES
    with TemporaryDirectory() as folder:
        wheel = build_wheel(Path(folder))
        python = empty_environment(Path(folder) / "environment")
        core = measured(python, wheel)
        if args.core:
            return core_again(core, args.out, args.page)

        def both(name: str) -> tuple[Resolution, Resolution]:
            sys.stderr.write(f"{name} …\n")
            return resolve(python, name), resolve(python, name, str(wheel))

        with ThreadPoolExecutor(args.at_once) as pool:
            pairs = dict(zip(names, pool.map(both, names), strict=True))
    alone, beside = ({name: pair[place] for name, pair in pairs.items()} for place in (0, 1))
    table = table_of(alone, beside)
    bad = refusals(beside, alone)
    older = [name for name, row in table.items() if row["downgraded"]]
    results.write(
        "compat",
        command="make bench-compat",
        seed=0,
        figures={
            "packages": len(names),
            "refused": len(bad),
            "refused_alone": sum(bool(each.refused) for each in alone.values()),
            "downgraded": len(older),
            **core,
        },
        tables={"packages": table, "conflicts": conflicts(alone)},
        folder=args.out,
    )
    if args.page:
        write_page(args.page, args.out)
    sys.stderr.write(f"refused: {', '.join(bad) or 'none'}; made older: {', '.join(older) or 'none'}\n")
    return int(bool(bad or older))


if __name__ == "__main__":
    sys.exit(main())
