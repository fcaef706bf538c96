"""Boards of many tenants in one process: views over one store, in which each definition is kept and embedded once."""

from pegboard.fair_queue import FairQueue
from pegboard.tenants.definition_store import DefinitionStore, ServerRows
from pegboard.tenants.tenant_boards import Imported, TenantBoards

__all__ = ["DefinitionStore", "FairQueue", "Imported", "ServerRows", "TenantBoards"]
