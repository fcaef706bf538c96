"""crewai: delegation and questions to co-workers (`delegate_work_to_coworker`, `ask_question_to_coworker`)."""

import os

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

from catalog import EXPERT_INSTRUCTIONS, INSTRUCTIONS, MOST_STEPS, base, functions, run

TOOLS = [tool(each) for each in functions()]


async def ask(text: str) -> object:
    model = LLM(model="openai/gpt-5", base_url=f"{base()}/v1", api_key="x")
    shared = {"llm": model, "verbose": False, "max_iter": MOST_STEPS}
    clerk = Agent(
        role="clerk", goal="Serve the customer", backstory=INSTRUCTIONS, tools=TOOLS, allow_delegation=True, **shared
    )
    expert = Agent(role="shipping", goal="Know every parcel", backstory=EXPERT_INSTRUCTIONS, tools=TOOLS, **shared)
    task = Task(description=text, expected_output="An answer", agent=clerk)
    return (await Crew(agents=[clerk, expert], tasks=[task], verbose=False).kickoff_async()).raw


run(ask)
