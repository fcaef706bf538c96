"""llama-index: a workflow of agents that hand off to one another (`handoff`)."""

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAI

from catalog import EXPERT_INSTRUCTIONS, INSTRUCTIONS, MOST_STEPS, base, functions, run


async def ask(text: str) -> object:
    model = OpenAI(model="gpt-4.1", api_base=f"{base()}/v1", api_key="x", max_retries=0)
    tools = [FunctionTool.from_defaults(each) for each in functions()]
    shared = {"llm": model, "tools": tools, "streaming": False}
    clerk = FunctionAgent(
        name="clerk", description="Serves customers", system_prompt=INSTRUCTIONS, can_handoff_to=["shipping"], **shared
    )
    expert = FunctionAgent(
        name="shipping", description="Knows every parcel", system_prompt=EXPERT_INSTRUCTIONS, **shared
    )
    workflow = AgentWorkflow(agents=[clerk, expert], root_agent="clerk")
    return await workflow.run(user_msg=text, max_iterations=MOST_STEPS)


run(ask)
