"""smolagents: the answer is a call of `final_answer`; a call is required at every step."""

import tempfile

from smolagents import OpenAIModel, ToolCallingAgent, tool

from catalog import INSTRUCTIONS, MOST_STEPS, base, run, written

FUNCTIONS = [tool(each) for each in written(tempfile.mkdtemp())]


async def ask(text: str) -> object:
    model = OpenAIModel(model_id="gpt-5", api_base=f"{base()}/v1", api_key="x")
    agent = ToolCallingAgent(
        tools=FUNCTIONS, model=model, max_steps=MOST_STEPS, verbosity_level=0, instructions=INSTRUCTIONS
    )
    result = agent.run(text, return_full_result=True)
    if result.state != "success":
        raise RuntimeError(f"{result.state}: {result.output}")
    return result.output


run(ask)
