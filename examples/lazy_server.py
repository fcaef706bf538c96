"""An MCP server with forty tools, of which a client is listed four meta-tools and one that is always there.

python examples/lazy_server.py            # on stdio
python examples/lazy_server.py 8000       # at http://127.0.0.1:8000/mcp
"""

import sys

from mcp.server.mcpserver import MCPServer

import pegboard

server = MCPServer("shop", instructions="A shop and its orders.")
THINGS = ("order", "invoice", "customer", "parcel", "refund", "supplier", "coupon", "review", "ticket", "branch")


@server.tool()
def list_orders(customer: str) -> list[str]:
    """List the orders of a customer."""
    return [f"{customer}-1", f"{customer}-2"]


def add_tools(thing: str) -> None:
    """Four tools for a thing; a real server has them one by one."""

    @server.tool(name=f"create_{thing}", description=f"Create one {thing} in the books of the shop.")
    def create(name: str) -> str:
        return f"{thing} {name} created"

    @server.tool(name=f"find_{thing}", description=f"Find one {thing} by its name.")
    def find(name: str) -> str:
        return f"{thing} {name}"

    @server.tool(name=f"change_{thing}", description=f"Change one field of one {thing}.")
    def change(name: str, field: str, value: str) -> str:
        return f"{thing} {name}: {field} is {value}"

    @server.tool(name=f"delete_{thing}", description=f"Delete one {thing} for good.")
    def delete(name: str) -> str:
        return f"{thing} {name} deleted"


for each in THINGS:
    add_tools(each)

pegboard.lazy(server, always_available=("list_orders",), eager_tokens=1000)

if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
