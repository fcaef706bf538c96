"""openai-agents asks a server twice in one conversation: `drive_stored_answers.py URL ids|items whole|streamed`.

With ids it continues answers that the provider keeps; with items it sends everything back. It prints what it called.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from openai import AsyncOpenAI

from agents import Agent, FunctionTool, OpenAIResponsesModel, Runner, set_tracing_disabled

set_tracing_disabled(True)


async def main(url: str, by_ids: bool, streams: bool) -> None:
    jobs, asks = json.loads(sys.stdin.read())
    called: list[str] = []

    def tool(name: str, said: str) -> FunctionTool:
        async def run(_context: Any, _arguments: str) -> str:
            called.append(name)
            return "ok"

        schema = {"type": "object", "properties": {}, "additionalProperties": False, "required": []}
        return FunctionTool(name=name, description=said, params_json_schema=schema, on_invoke_tool=run)

    client = AsyncOpenAI(base_url=f"{url}/openai/v1", api_key="sk-mine", max_retries=0)
    model = OpenAIResponsesModel(model="gpt-5.4", openai_client=client)
    agent = Agent(name="Librarian", model=model, tools=[tool(*each) for each in jobs.items()])
    said: list[Any] = []
    before, texts = None, []
    for ask in asks:
        given = [*said, {"role": "user", "content": ask}]
        more: dict[str, Any] = {"previous_response_id": before, "auto_previous_response_id": True} if by_ids else {}
        if streams:
            result: Any = Runner.run_streamed(agent, given, **more)
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(agent, given, **more)
        texts.append(result.final_output)
        if by_ids:
            before = result.last_response_id
        else:
            said = result.to_input_list()
    print(json.dumps({"called": called, "texts": texts}))


asyncio.run(main(sys.argv[1], sys.argv[2] == "ids", sys.argv[3] == "streamed"))
