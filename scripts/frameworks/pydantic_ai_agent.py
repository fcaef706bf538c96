"""pydantic-ai: structured output by the tool `final_result`; a call is required at every step."""

from pydantic import BaseModel
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from catalog import INSTRUCTIONS, MOST_STEPS, base, functions, run


class Report(BaseModel):
    summary: str
    count: int


async def ask(text: str) -> object:
    model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(base_url=f"{base()}/v1", api_key="x"))
    agent = Agent(model, tools=functions(), instructions=INSTRUCTIONS, output_type=Report)
    return (await agent.run(text, usage_limits=UsageLimits(request_limit=MOST_STEPS))).output


run(ask)
