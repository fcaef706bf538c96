"""Helm's own engine over a chart, as a process of its own: `helm lint` and `helm template` without the program.

python helm_engine.py CHART < {"name": …, "namespace": …, "values": {…}}    # JSON: {"messages": […], "files": {…}}
"""

from __future__ import annotations

import json
import sys

import helm_python as helm  # type: ignore[import-not-found]


def main(path: str) -> None:
    asked = json.load(sys.stdin)
    said = {"messages": helm.lint(path, values=asked["values"]), "files": {}}
    try:
        with helm.Chart.load(path) as chart:
            said["files"] = chart.render(values=asked["values"], name=asked["name"], namespace=asked["namespace"])
    except helm.HelmError as error:
        said["error"] = str(error)
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1])
