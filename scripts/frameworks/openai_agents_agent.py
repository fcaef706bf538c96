"""openai-agents: handoffs (`transfer_to_…`) over Responses; at first a call is required."""

from openai import AsyncOpenAI

from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from catalog import EXPERT_INSTRUCTIONS, INSTRUCTIONS, MOST_STEPS, base, functions, run

set_tracing_disabled(True)


async def ask(text: str) -> object:
    model = OpenAIResponsesModel("gpt-5", AsyncOpenAI(base_url=f"{base()}/v1", api_key="x", max_retries=0))
    tools = [function_tool(each) for each in functions()]
    expert = Agent(name="shipping", instructions=EXPERT_INSTRUCTIONS, tools=tools, model=model)
    person = Agent(name="human support", instructions="You pass questions on to a human.", model=model)
    first = Agent(
        name="back office",
        instructions=INSTRUCTIONS,
        tools=tools,
        handoffs=[expert, person],
        model=model,
        model_settings=ModelSettings(tool_choice="required"),
    )
    return (await Runner.run(first, text, max_turns=MOST_STEPS)).final_output


run(ask)
