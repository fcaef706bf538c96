"""An agent's loop through each SDK: it asks, makes every call that it is told to, and asks on until there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sdk_drivers import DRIVERS, JOBS, SCHEMA, LangChain

MOST_STEPS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answer as the SDK understood it. ``used`` are the tokens of input and output, where it says so."""

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    stop: str = ""
    used: tuple[int, int] = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """``choice`` is auto, none, required or the name of a tool to call, in the first request; None says nothing."""

    ask: str
    tools: Mapping[str, str] = field(default_factory=lambda: JOBS)
    choice: str | None = None
    model: str = "some-model"


class Agent(Protocol):
    format: str
    streams: bool

    def run(self, url: str, job: Job) -> list[Step]: ...


@dataclass(frozen=True)
class ChatAgent:
    streams: bool = False
    format: str = "openai_chat"

    def run(self, url: str, job: Job) -> list[Step]:
        from openai import OpenAI

        messages: list[Any] = [{"role": "user", "content": job.ask}]
        asked: dict[str, Any] = {"model": job.model, "messages": messages, "tools": chat_tools(job.tools)}
        if job.choice is not None:
            named = {"type": "function", "function": {"name": job.choice}}
            asked["tool_choice"] = named if job.choice in job.tools else job.choice
        steps: list[Step] = []
        with OpenAI(base_url=f"{url}/openai/v1", api_key="sk-mine", max_retries=0) as client:
            while len(steps) < MOST_STEPS:
                completion = self._completion(client, asked)
                message, usage = completion.choices[0].message, completion.usage
                calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]
                steps.append(
                    Step(
                        text=message.content or "",
                        calls=tuple(calls),
                        stop=completion.choices[0].finish_reason,
                        used=(usage.prompt_tokens, usage.completion_tokens),
                    )
                )
                if not calls:
                    break
                messages.append(message.model_dump(exclude={"parsed"}, exclude_none=True))
                messages += [
                    {"role": "tool", "tool_call_id": call.id, "content": done(call.function.name)}
                    for call in message.tool_calls
                ]
                asked.pop("tool_choice", None)
        return steps

    def _completion(self, client: Any, asked: Mapping[str, Any]) -> Any:
        if not self.streams:
            return client.chat.completions.create(**asked)
        with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
            return stream.get_final_completion()


@dataclass(frozen=True)
class MessagesAgent:
    streams: bool = False
    format: str = "anthropic"

    def run(self, url: str, job: Job) -> list[Step]:
        from anthropic import Anthropic

        messages: list[Any] = [{"role": "user", "content": job.ask}]
        tools = [{"name": name, "description": said, "input_schema": SCHEMA} for name, said in job.tools.items()]
        asked: dict[str, Any] = {"model": job.model, "max_tokens": 100, "messages": messages, "tools": tools}
        if job.choice in job.tools:
            asked["tool_choice"] = {"type": "tool", "name": job.choice}
        elif job.choice is not None:
            asked["tool_choice"] = {"type": {"required": "any"}.get(job.choice, job.choice)}
        steps: list[Step] = []
        with Anthropic(base_url=f"{url}/anthropic", api_key="sk-mine", max_retries=0) as client:
            while len(steps) < MOST_STEPS:
                message = self._message(client, asked)
                calls = [block for block in message.content if block.type == "tool_use"]
                steps.append(
                    Step(
                        text="".join(block.text for block in message.content if block.type == "text"),
                        calls=tuple((block.name, block.input) for block in calls),
                        stop=message.stop_reason,
                        used=(message.usage.input_tokens, message.usage.output_tokens),
                    )
                )
                if not calls:
                    break
                said = [block.model_dump(exclude={"parsed_output"}, exclude_none=True) for block in message.content]
                results = [
                    {"type": "tool_result", "tool_use_id": each.id, "content": done(each.name)} for each in calls
                ]
                messages += [{"role": "assistant", "content": said}, {"role": "user", "content": results}]
                asked.pop("tool_choice", None)
        return steps

    def _message(self, client: Any, asked: Mapping[str, Any]) -> Any:
        if not self.streams:
            return client.messages.create(**asked)
        with client.messages.stream(**asked) as stream:
            return stream.get_final_message()


@dataclass(frozen=True)
class ResponsesAgent:
    """The history is with the client."""

    streams: bool = False
    format: str = "openai_responses"

    def run(self, url: str, job: Job) -> list[Step]:
        from openai import OpenAI

        said: list[Any] = [{"role": "user", "content": job.ask}]
        tools = [
            {"type": "function", "name": name, "description": about, "parameters": SCHEMA, "strict": False}
            for name, about in job.tools.items()
        ]
        asked: dict[str, Any] = {"model": job.model, "input": said, "tools": tools, "store": False}
        if job.choice is not None:
            asked["tool_choice"] = {"type": "function", "name": job.choice} if job.choice in job.tools else job.choice
        steps: list[Step] = []
        with OpenAI(base_url=f"{url}/openai/v1", api_key="sk-mine", max_retries=0) as client:
            while len(steps) < MOST_STEPS:
                response = self._response(client, asked)
                calls = [item for item in response.output if item.type == "function_call"]
                steps.append(
                    Step(
                        text=response.output_text,
                        calls=tuple((call.name, json.loads(call.arguments)) for call in calls),
                        stop=response.status,
                        used=(response.usage.input_tokens, response.usage.output_tokens),
                    )
                )
                assert "search_tools" not in [tool.name for tool in response.tools] or "search_tools" in job.tools
                if not calls:
                    break
                results = [
                    {"type": "function_call_output", "call_id": call.call_id, "output": done(call.name)}
                    for call in calls
                ]
                said += [item.model_dump(exclude={"parsed_arguments"}, exclude_none=True) for item in response.output]
                said += results
                asked.pop("tool_choice", None)
        return steps

    def _response(self, client: Any, asked: Mapping[str, Any]) -> Any:
        if not self.streams:
            return client.responses.create(**asked)
        with client.responses.stream(**asked) as stream:
            return stream.get_final_response()


@dataclass(frozen=True)
class ContentsAgent:
    streams: bool = False
    format: str = "gemini"

    def run(self, url: str, job: Job) -> list[Step]:
        from google import genai
        from google.genai import types

        contents: list[Any] = [types.Content(role="user", parts=[types.Part.from_text(text=job.ask)])]
        declared = [
            types.FunctionDeclaration(name=name, description=said, parameters_json_schema=SCHEMA)
            for name, said in job.tools.items()
        ]
        config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=declared)])
        if job.choice is not None:
            config.tool_config = types.ToolConfig(function_calling_config=self._choice(job, types))
        steps: list[Step] = []
        with genai.Client(api_key="sk-mine", http_options=types.HttpOptions(base_url=f"{url}/gemini")) as client:
            while len(steps) < MOST_STEPS:
                answers = self._answers(client, {"model": job.model, "contents": contents, "config": config})
                parts = [part for answer in answers for part in answer.candidates[0].content.parts or ()]
                calls = [part.function_call for part in parts if part.function_call]
                usage = answers[-1].usage_metadata
                steps.append(
                    Step(
                        text="".join(part.text or "" for part in parts),
                        calls=tuple((call.name, call.args) for call in calls),
                        stop=answers[-1].candidates[0].finish_reason.value,
                        used=(usage.prompt_token_count, usage.candidates_token_count),
                    )
                )
                if not calls:
                    break
                results = [
                    types.Part.from_function_response(name=call.name, response={"result": done(call.name)})
                    for call in calls
                ]
                contents += [types.Content(role="model", parts=parts), types.Content(role="user", parts=results)]
                config.tool_config = None
        return steps

    def _choice(self, job: Job, types: Any) -> Any:
        if job.choice in job.tools:
            return types.FunctionCallingConfig(mode="ANY", allowed_function_names=[job.choice])
        return types.FunctionCallingConfig(mode={"required": "ANY"}.get(str(job.choice), str(job.choice).upper()))

    def _answers(self, client: Any, asked: Mapping[str, Any]) -> list[Any]:
        if self.streams:
            return list(client.models.generate_content_stream(**asked))
        return [client.models.generate_content(**asked)]


@dataclass(frozen=True)
class LangChainAgent:
    """The same through a chat model of LangChain's, which says otherwise why an answer ended, and what it took."""

    model: LangChain

    @property
    def format(self) -> str:
        return self.model.format

    @property
    def streams(self) -> bool:
        return self.model.streams

    def run(self, url: str, job: Job) -> list[Step]:
        from langchain_core.messages import HumanMessage, ToolMessage

        messages: list[Any] = [HumanMessage(content=job.ask)]
        chosen: Any = {"required": "any"}.get(job.choice or "", job.choice)
        if chosen == "none" and self.model.provider == "anthropic":
            chosen = {"type": "none"}
        steps: list[Step] = []
        while len(steps) < MOST_STEPS:
            choice = {} if chosen is None or steps else {"tool_choice": chosen}
            model = self.model.model(url, job.model)
            if self.format == "openai_responses":
                model.store = False
            message = self._answer(model.bind_tools(chat_tools(job.tools), **choice), messages)
            calls = tuple((call["name"], call["args"]) for call in message.tool_calls)
            steps.append(Step(text=message.text, calls=calls))
            if not message.tool_calls:
                break
            messages.append(message)
            messages += [
                ToolMessage(content=done(call["name"]), tool_call_id=call["id"], name=call["name"])
                for call in message.tool_calls
            ]
        return steps

    def _answer(self, model: Any, messages: list[Any]) -> Any:
        if not self.model.streams:
            return model.invoke(messages)
        first, *others = model.stream(messages)
        for piece in others:
            first += piece
        return first


def chat_tools(tools: Mapping[str, str]) -> list[Any]:
    return [
        {"type": "function", "function": {"name": name, "description": said, "parameters": SCHEMA}}
        for name, said in tools.items()
    ]


def done(tool: str) -> str:
    return f"{tool} is done"


AGENTS: Mapping[str, Agent] = {
    "chat": ChatAgent(),
    "chat-stream": ChatAgent(streams=True),
    "responses": ResponsesAgent(),
    "responses-stream": ResponsesAgent(streams=True),
    "messages": MessagesAgent(),
    "messages-stream": MessagesAgent(streams=True),
    "contents": ContentsAgent(),
    "contents-stream": ContentsAgent(streams=True),
}
CHAINS: Mapping[str, Agent] = {
    name: LangChainAgent(model) for name, model in DRIVERS.items() if isinstance(model, LangChain)
}
