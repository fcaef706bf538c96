"""An agent's loop over Anthropic's SDK, async: each request carries the few tools that its turn needs.

ANTHROPIC_API_KEY=… python examples/anthropic_agent.py "when is high tide in Bergen?"
"""

import asyncio
import sys

from anthropic import AsyncAnthropic

from pegboard import Board, Call


async def high_tide(harbour: str) -> str:
    """When the tide is high at a harbour"""
    return f"{harbour}: 04:05 and 16:20"


async def renew_loan(book: str) -> str:
    """Renew the loan of a library book"""
    return f"{book}: renewed for three weeks"


async def main(ask: str) -> str:
    async with Board([high_tide, renew_loan], k=5) as board, AsyncAnthropic() as client:
        messages = [{"role": "user", "content": ask}]
        while True:
            decision = await board.route(messages)
            tools = decision.tools_for("anthropic")
            said = await client.messages.create(
                model="claude-sonnet-5", max_tokens=1024, messages=messages, tools=tools
            )
            messages.append({"role": "assistant", "content": [block.model_dump() for block in said.content]})
            results = []
            for call in (block for block in said.content if block.type == "tool_use"):
                result = await board.execute(Call(name=call.name, arguments=call.input), decision)
                done = {"type": "tool_result", "tool_use_id": call.id, "is_error": result.is_error}
                results.append({**done, "content": result.text})
            if not results:
                return "".join(block.text for block in said.content if block.type == "text")
            messages.append({"role": "user", "content": results})


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1])))
