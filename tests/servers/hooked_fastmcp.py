"""A FastMCP server with lazy tools, on stdio; run it with the Python of an environment that has FastMCP."""

from __future__ import annotations

if __name__ == "__main__":
    import atexit
    import gc

    gc.disable()  # while it imports and in its short life, which is a quarter less
    atexit.register(gc.freeze)

from fastmcp import Context, FastMCP

import pegboard

server = FastMCP("shop", instructions="A shop.")


@server.tool
async def count(ctx: Context, to: int) -> int:
    """Count up slowly and report progress."""
    for step in range(to):
        await ctx.report_progress(step + 1, to, f"step {step + 1}")
    return to


@server.tool
async def colour(ctx: Context) -> str:
    """Ask the user for a favourite colour."""
    answer = await ctx.elicit("Which colour?", response_type=str)
    return f"{answer.action}: {getattr(answer, 'data', None)}"


@server.tool
async def open_vault(ctx: Context) -> str:
    """Show this session the tool of the vault."""
    await ctx.enable_components(names={"vault"})
    return "open"


@server.tool
def vault() -> str:
    """Take gold out of the vault."""
    return "gold"


server.disable(names={"vault"})

for number in range(20):

    @server.tool(name=f"shelf_{number}", description=f"Look at shelf number {number}.")
    def shelf(item: str, number: int = number) -> dict[str, object]:
        return {"shelf": number, "item": item}


if __name__ == "__main__":
    pegboard.lazy(server, eager_tokens=500, categories="server").run(show_banner=False)
