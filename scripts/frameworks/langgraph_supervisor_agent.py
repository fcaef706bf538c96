"""LangGraph's supervisor of five: handoffs to workers (`transfer_to_…`) and back.

With so many tools of its own it is an agent to which the default configuration gives `call_tool` (docs/call-tool.md).
"""

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from langgraph_supervisor import create_supervisor

from catalog import EXPERT_INSTRUCTIONS, INSTRUCTIONS, MOST_STEPS, base, functions, run

PEOPLE = ("human_support", "accounting", "legal", "procurement")
"""Workers without tools."""


async def ask(text: str) -> object:
    model = ChatOpenAI(model="gpt-5", base_url=f"{base()}/v1", api_key="x", max_retries=0)
    tools = [tool(each) for each in functions()]
    expert = create_react_agent(model, tools, name="shipping", prompt=EXPERT_INSTRUCTIONS)
    people = [create_react_agent(model, [], name=name, prompt=f"You pass questions on to {name}.") for name in PEOPLE]
    graph = create_supervisor([expert, *people], model=model, tools=tools, prompt=INSTRUCTIONS).compile()
    state = await graph.ainvoke(
        {"messages": [{"role": "user", "content": text}]}, {"recursion_limit": 2 * MOST_STEPS + 1}
    )
    return state["messages"][-1].content


run(ask)
