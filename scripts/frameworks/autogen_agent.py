"""autogen: a swarm with handoffs (`transfer_to_…`)."""

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMessageTermination
from autogen_agentchat.teams import Swarm
from autogen_ext.models.openai import OpenAIChatCompletionClient

from catalog import EXPERT_INSTRUCTIONS, INSTRUCTIONS, MOST_STEPS, base, functions, run

ABILITIES = {
    "vision": False,
    "function_calling": True,
    "json_output": True,
    "family": "gpt-5",
    "structured_output": True,
}


async def ask(text: str) -> object:
    client = OpenAIChatCompletionClient(
        model="gpt-5", base_url=f"{base()}/v1", api_key="x", model_info=ABILITIES, max_retries=0
    )
    clerk = AssistantAgent(
        "clerk", client, tools=functions(), handoffs=["shipping"], system_message=INSTRUCTIONS, max_tool_iterations=1
    )
    expert = AssistantAgent(
        "shipping", client, tools=functions(), handoffs=["clerk"], system_message=EXPERT_INSTRUCTIONS
    )
    ends = TextMessageTermination("clerk") | TextMessageTermination("shipping") | MaxMessageTermination(3 * MOST_STEPS)
    result = await Swarm([clerk, expert], termination_condition=ends).run(task=text)
    await client.close()
    if "Maximum" in (result.stop_reason or ""):
        raise RuntimeError(result.stop_reason)
    return result.messages[-1].content


run(ask)
