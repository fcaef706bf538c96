"""Module names of earlier releases: importing one gives the module that replaced it, with a DeprecationWarning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "pegboard.bench": "pegboard_bench",
    "pegboard.board": "pegboard.routing_board",
    "pegboard.client_configs": "pegboard.settings.client_configs",
    "pegboard.gateways.langchain.scripted": "pegboard.gateways.langchain.scripted_model",
    "pegboard.gateways.mcp.hook": "pegboard.gateways.mcp.embedded.lazy",
    "pegboard.gateways.mcp.in_process": "pegboard.gateways.mcp.embedded.hooked_server",
    "pegboard.importing": "pegboard.settings.client_import",
    "pegboard.protected": "pegboard.protection",
    "pegboard.seams": "pegboard.protocols",
    "pegboard.server_spec": "pegboard.settings.server_spec",
    "pegboard.spending": "pegboard.spend_limits",
}
"""Old name to new name, for modules that users import. Internal modules are not listed."""


def moved(name: str) -> str | None:
    """The new name of a moved module, or of a module inside a moved package."""
    for old, new in MOVED.items():
        if name == old or name.startswith(f"{old}."):
            return new + name.removeprefix(old)
    return None


class MovedModules(MetaPathFinder, Loader):
    """Import hook for the old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if moved(fullname) else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Start with an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Replace the entry in `sys.modules`: the import system returns what it finds there afterwards."""
        old, new = module.__name__, str(moved(module.__name__))
        warnings.warn(f"{old} is now {new}.", DeprecationWarning, stacklevel=2)
        sys.modules[old] = import_module(new)


def install() -> None:
    """Install the hook, once per process."""
    if not any(isinstance(each, MovedModules) for each in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())
