"""agent-framework: handoffs between agents (`handoff_to_…`)."""

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient
from agent_framework.orchestrations import HandoffBuilder

from catalog import EXPERT_INSTRUCTIONS, INSTRUCTIONS, base, functions, run


async def ask(text: str) -> object:
    client = OpenAIChatCompletionClient(model="gpt-5", base_url=f"{base()}/v1", api_key="x")
    shared = {"client": client, "tools": functions(), "require_per_service_call_history_persistence": True}
    clerk = Agent(name="clerk", instructions=INSTRUCTIONS, **shared)
    expert = Agent(name="shipping", instructions=EXPERT_INSTRUCTIONS, **shared)
    workflow = HandoffBuilder(participants=[clerk, expert]).with_start_agent(clerk).build()
    return await workflow.run(text)


run(ask)
