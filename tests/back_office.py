"""A conversation with a back office of thirty-four tools, in every format: three jobs, which come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from model_bodies import CONVERSATION

JOBS = {
    "renew_loan": "Extend the due date of a borrowed book",
    "weather_forecast": "Weather of the coming days at a place",
    "convert_currency": "Convert an amount of money into another currency",
    "water_plants": "Open the valve of one garden bed",
    **{f"unit_{number}": f"Read sensor {number} of engine {number}" for number in range(30)},
}
NOTE = "It answers with the entry as it then stands, or says which field was wrong and where that stands. " * 6
SYSTEM = "You run the back office of a library, and of the garden that surrounds it. " * 600
WEATHER, LOAN, MONEY = (f"{JOBS[name]}, please" for name in ("weather_forecast", "renew_loan", "convert_currency"))
SESSION = [WEATHER, "and in Oslo?", "thanks", LOAN, "both", "again", WEATHER, LOAN, "ok", MONEY, "and back?", LOAN]
INTENTS = [["weather_forecast"]] * 3 + [["renew_loan"]] * 3 + [["weather_forecast"]] + [["renew_loan"]] * 2
INTENTS += [["convert_currency"]] * 2 + [["renew_loan"]]
"""What each of its turns is about: three jobs, which come back."""
JOBS_ASKED = {name for intent in INTENTS for name in intent}

PATHS = {
    "openai_chat": "/openai/v1/chat/completions",
    "openai_responses": "/openai/v1/responses",
    "anthropic": "/anthropic/v1/messages",
    "gemini": "/gemini/v1beta/models/gemini-3-flash:generateContent",
}


def tools(name: str) -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": {"what": {"type": "string", "description": NOTE}}}
    match name:
        case "openai_chat":
            functions = [{"name": job, "description": said, "parameters": schema} for job, said in JOBS.items()]
            return [{"type": "function", "function": each} for each in functions]
        case "openai_responses":
            return [
                {"type": "function", "name": job, "description": said, "parameters": schema}
                for job, said in JOBS.items()
            ]
        case "anthropic":
            offered = [{"name": job, "description": said, "input_schema": schema} for job, said in JOBS.items()]
            return [*offered[:-1], offered[-1] | {"cache_control": {"type": "ephemeral"}}]
        case _:
            declared = [{"name": job, "description": said, "parameters": schema} for job, said in JOBS.items()]
            return [{"functionDeclarations": declared}]


def spoken(name: str, role: str, text: str) -> dict[str, Any]:
    if name == "gemini":
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
    return {"role": role, "content": text}


def asking(name: str, said: Sequence[str], *more: dict[str, Any]) -> dict[str, Any]:
    """A request after so many turns, each but the last answered, and what came after the last."""
    talk = [each for text in said for each in (spoken(name, "user", text), spoken(name, "assistant", "Done."))][:-1]
    body: dict[str, Any] = {CONVERSATION[name]: [*talk, *more], "tools": tools(name)}
    match name:
        case "openai_chat":
            system = {"role": "system", "content": SYSTEM}
            return body | {"model": "gpt-5-mini", "messages": [system, *body["messages"]]}
        case "openai_responses":
            return body | {"model": "gpt-5-mini", "instructions": SYSTEM}
        case "anthropic":
            return body | {"model": "claude-sonnet-5", "max_tokens": 100, "system": SYSTEM}
        case _:
            return body | {"systemInstruction": {"parts": [{"text": SYSTEM}]}}
