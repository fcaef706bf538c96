"""LangChain: structured output by ToolStrategy, a tool named as the schema is; a call is required at every step."""

from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from catalog import INSTRUCTIONS, MOST_STEPS, base, functions, run


class OfficeReport(BaseModel):
    """What was found out and done."""

    summary: str
    count: int


async def ask(text: str) -> object:
    model = ChatOpenAI(model="gpt-5", base_url=f"{base()}/v1", api_key="x", max_retries=0)
    tools = [tool(each) for each in functions()]
    agent = create_agent(model, tools, system_prompt=INSTRUCTIONS, response_format=ToolStrategy(OfficeReport))
    state = await agent.ainvoke(
        {"messages": [{"role": "user", "content": text}]}, {"recursion_limit": 2 * MOST_STEPS + 1}
    )
    return state["structured_response"]


run(ask)
