"""google-adk: transfer to sub-agents (`transfer_to_agent`) and structured output (`set_model_response`)."""

import os

os.environ |= {"GOOGLE_API_KEY": "x", "OTEL_SDK_DISABLED": "true"}

from catalog import EXPERT_INSTRUCTIONS, INSTRUCTIONS, MOST_STEPS, base, functions, run

os.environ["GOOGLE_GEMINI_BASE_URL"] = base()

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.runners import InMemoryRunner
from google.genai import types

PAGER = functions()


async def ask(text: str) -> object:
    expert = LlmAgent(
        name="shipping",
        model="gemini-3-pro",
        description="Knows every parcel",
        instruction=EXPERT_INSTRUCTIONS,
        tools=PAGER,
    )
    clerk = LlmAgent(name="clerk", model="gemini-3-pro", instruction=INSTRUCTIONS, tools=PAGER, sub_agents=[expert])
    runner = InMemoryRunner(agent=clerk, app_name="office")
    session = await runner.session_service.create_session(app_name="office", user_id="ann")
    message = types.Content(role="user", parts=[types.Part(text=text)])
    said = ""
    async for event in runner.run_async(
        user_id="ann", session_id=session.id, new_message=message, run_config=RunConfig(max_llm_calls=MOST_STEPS)
    ):
        if event.is_final_response() and event.content:
            said = "".join(part.text or "" for part in event.content.parts or [])
    return said


run(ask)
