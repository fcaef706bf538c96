"""One request said through each SDK, so that every case is a case of all of them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
JOBS = {
    "create_issue": "Open an issue in a project's tracker.",
    "weather_forecast": "Weather of the coming days at a place.",
    "convert_currency": "Convert an amount of money into another currency.",
    "renew_loan": "Extend the due date of a borrowed book.",
    "water_plants": "Open the valve of one garden bed.",
    "book_flight": "Search and book airline tickets.",
    "send_email": "Send an email to somebody.",
    "play_song": "Play a song on the speakers.",
    "resize_image": "Change the size of a picture.",
    "translate_text": "Translate a text into another language.",
}
RENEW = "Please extend the due date of the book that I borrowed from the library."
SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    text: str
    role: str = "user"
    image: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A call that the model made, and its result."""

    tool: str
    result: str = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """``choice`` is auto, none, required or the name of a tool to call; None says nothing of it."""

    conversation: Sequence[Said | Called]
    tools: Mapping[str, str]
    choice: str | None = None
    model: str = "some-model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    text: str = ""
    called: tuple[str, ...] = ()


class Driver(Protocol):
    """``format`` is the codec's name of what it speaks."""

    format: str

    def ask(self, url: str, ask: Ask) -> Heard: ...


@dataclass(frozen=True)
class OpenAIChat:
    streams: bool = False
    format: str = "openai_chat"

    def ask(self, url: str, ask: Ask) -> Heard:
        from openai import OpenAI

        asked: dict[str, Any] = {
            "model": ask.model,
            "messages": [message for each in ask.conversation for message in self._messages(each)],
            "tools": [
                {"type": "function", "function": {"name": name, "description": said, "parameters": SCHEMA}}
                for name, said in ask.tools.items()
            ],
        }
        if ask.choice is not None:
            named = {"type": "function", "function": {"name": ask.choice}}
            asked |= {"tool_choice": named if ask.choice in ask.tools else ask.choice, "parallel_tool_calls": True}
        with OpenAI(base_url=f"{url}/openai/v1", api_key="sk-mine", max_retries=0) as client:
            if self.streams:
                with client.chat.completions.stream(**asked) as stream:
                    message = stream.get_final_completion().choices[0].message
            else:
                message = client.chat.completions.create(**asked).choices[0].message
        calls = [call.function.name for call in message.tool_calls or ()]
        return Heard(text=message.content or "", called=tuple(calls))

    def _messages(self, each: Said | Called) -> list[dict[str, Any]]:
        if isinstance(each, Called):
            call = {"id": "c1", "type": "function", "function": {"name": each.tool, "arguments": "{}"}}
            return [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": each.result},
            ]
        if not each.image:
            return [{"role": each.role, "content": each.text}]
        image = {"type": "image_url", "image_url": {"url": _data_url()}}
        text = [{"type": "text", "text": each.text}] if each.text else []
        return [{"role": each.role, "content": [*text, image]}]


@dataclass(frozen=True)
class OpenAIResponses:
    streams: bool = False
    format: str = "openai_responses"

    def ask(self, url: str, ask: Ask) -> Heard:
        from openai import OpenAI

        asked: dict[str, Any] = {
            "model": ask.model,
            "input": [item for each in ask.conversation for item in self._items(each)],
            "tools": [
                {"type": "function", "name": name, "description": said, "parameters": SCHEMA, "strict": False}
                for name, said in ask.tools.items()
            ],
        }
        if ask.choice is not None:
            named = {"type": "function", "name": ask.choice}
            asked |= {"tool_choice": named if ask.choice in ask.tools else ask.choice, "parallel_tool_calls": True}
        with OpenAI(base_url=f"{url}/openai/v1", api_key="sk-mine", max_retries=0) as client:
            if self.streams:
                with client.responses.stream(**asked) as stream:
                    response: Any = stream.get_final_response()
            else:
                response = client.responses.create(**asked)
        calls = [item.name for item in response.output if item.type == "function_call"]
        return Heard(text=response.output_text, called=tuple(calls))

    def _items(self, each: Said | Called) -> list[dict[str, Any]]:
        if isinstance(each, Called):
            call = {"type": "function_call", "call_id": "c1", "name": each.tool, "arguments": "{}"}
            return [call, {"type": "function_call_output", "call_id": "c1", "output": each.result}]
        if not each.image:
            return [{"role": each.role, "content": each.text}]
        image = {"type": "input_image", "image_url": _data_url(), "detail": "low"}
        text = [{"type": "input_text", "text": each.text}] if each.text else []
        return [{"role": each.role, "content": [*text, image]}]


@dataclass(frozen=True)
class AnthropicMessages:
    streams: bool = False
    format: str = "anthropic"

    def ask(self, url: str, ask: Ask) -> Heard:
        from anthropic import Anthropic

        system = [each.text for each in ask.conversation if isinstance(each, Said) and each.role == "system"]
        asked: dict[str, Any] = {
            "model": ask.model,
            "max_tokens": 100,
            "messages": [message for each in ask.conversation for message in self._messages(each)],
            "tools": [{"name": name, "description": said, "input_schema": SCHEMA} for name, said in ask.tools.items()],
        }
        asked |= {"system": system[0]} if system else {}
        if ask.choice in ask.tools:
            asked["tool_choice"] = {"type": "tool", "name": ask.choice}
        elif ask.choice is not None:
            asked["tool_choice"] = {"type": {"required": "any"}.get(ask.choice, ask.choice)}
        with Anthropic(base_url=f"{url}/anthropic", api_key="sk-mine", max_retries=0) as client:
            if self.streams:
                with client.messages.stream(**asked) as stream:
                    message: Any = stream.get_final_message()
            else:
                message = client.messages.create(**asked)
        calls = [block.name for block in message.content if block.type == "tool_use"]
        return Heard(text="".join(block.text for block in message.content if block.type == "text"), called=tuple(calls))

    def _messages(self, each: Said | Called) -> list[dict[str, Any]]:
        if isinstance(each, Called):
            use = {"type": "tool_use", "id": "t1", "name": each.tool, "input": {}}
            result = {"type": "tool_result", "tool_use_id": "t1", "content": each.result}
            return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        if each.role == "system":
            return []
        if not each.image:
            return [{"role": each.role, "content": each.text}]
        source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PIXEL).decode()}
        text = [{"type": "text", "text": each.text}] if each.text else []
        return [{"role": each.role, "content": [*text, {"type": "image", "source": source}]}]


@dataclass(frozen=True)
class Genai:
    streams: bool = False
    format: str = "gemini"

    def ask(self, url: str, ask: Ask) -> Heard:
        from google import genai
        from google.genai import types

        declared = [
            types.FunctionDeclaration(name=name, description=said, parameters_json_schema=SCHEMA)
            for name, said in ask.tools.items()
        ]
        system = [each.text for each in ask.conversation if isinstance(each, Said) and each.role == "system"]
        config = types.GenerateContentConfig(
            system_instruction=system[0] if system else None,
            tools=[types.Tool(function_declarations=declared)],
            tool_config=self._config(ask, types),
        )
        contents: Any = [content for each in ask.conversation for content in self._contents(each, types)]
        options = types.HttpOptions(base_url=f"{url}/gemini")
        with genai.Client(api_key="sk-mine", http_options=options) as client:
            asked: dict[str, Any] = {"model": ask.model, "contents": contents, "config": config}
            if self.streams:
                answers = list(client.models.generate_content_stream(**asked))
            else:
                answers = [client.models.generate_content(**asked)]
        parts = [part for answer in answers for part in answer.candidates[0].content.parts or ()]  # type: ignore[index,union-attr]
        return Heard(
            text="".join(part.text or "" for part in parts),
            called=tuple(str(part.function_call.name) for part in parts if part.function_call),
        )

    def _config(self, ask: Ask, types: Any) -> Any:
        if ask.choice is None:
            return None
        if ask.choice in ask.tools:
            calling = types.FunctionCallingConfig(mode="ANY", allowed_function_names=[ask.choice])
        else:
            calling = types.FunctionCallingConfig(mode={"required": "ANY"}.get(ask.choice, ask.choice.upper()))
        return types.ToolConfig(function_calling_config=calling)

    def _contents(self, each: Said | Called, types: Any) -> list[Any]:
        if isinstance(each, Called):
            call = types.Part.from_function_call(name=each.tool, args={})
            answer = types.Part.from_function_response(name=each.tool, response={"result": each.result})
            return [types.Content(role="model", parts=[call]), types.Content(role="user", parts=[answer])]
        if each.role == "system":
            return []
        parts = [types.Part.from_text(text=each.text)] if each.text else []
        parts += [types.Part.from_bytes(data=PIXEL, mime_type="image/png")] if each.image else []
        return [types.Content(role={"assistant": "model"}.get(each.role, each.role), parts=parts)]


@dataclass(frozen=True)
class LangChain:
    """A chat model of LangChain's for one provider."""

    provider: str
    streams: bool = False
    format: str = field(default="")

    def ask(self, url: str, ask: Ask) -> Heard:
        tools = [
            {"type": "function", "function": {"name": name, "description": said, "parameters": SCHEMA}}
            for name, said in ask.tools.items()
        ]
        choice: Any = {"required": "any"}.get(ask.choice or "", ask.choice)
        if choice == "none" and self.provider == "anthropic":  # of words it knows two, and takes others for names
            choice = {"type": "none"}
        chat = self.model(url, ask.model)
        model = chat.bind_tools(tools, **({} if choice is None else {"tool_choice": choice}))
        messages = [message for each in ask.conversation for message in self._messages(each)]
        if self.streams:
            pieces = list(model.stream(messages))
            message = pieces[0]
            for piece in pieces[1:]:
                message += piece
        else:
            message = model.invoke(messages)
        if self.provider == "google":  # the others share their connections, which stay
            chat.client.close()
        return Heard(text=message.text, called=tuple(call["name"] for call in message.tool_calls))

    def model(self, url: str, name: str) -> Any:
        match self.provider:
            case "openai":
                from langchain_openai import ChatOpenAI

                return ChatOpenAI(
                    model=name,
                    base_url=f"{url}/openai/v1",
                    api_key="sk-mine",
                    max_retries=0,
                    use_responses_api=self.format == "openai_responses",
                )
            case "anthropic":
                from langchain_anthropic import ChatAnthropic

                return ChatAnthropic(
                    model=name, base_url=f"{url}/anthropic", api_key="sk-mine", max_retries=0, max_tokens=100
                )
            case _:
                from langchain_google_genai import ChatGoogleGenerativeAI

                return ChatGoogleGenerativeAI(model=name, base_url=f"{url}/gemini", api_key="sk-mine", max_retries=1)

    def _messages(self, each: Said | Called) -> list[Any]:
        from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

        if isinstance(each, Called):
            call = {"id": "c1", "name": each.tool, "args": {}}
            return [
                AIMessage(content="", tool_calls=[call]),
                ToolMessage(content=each.result, tool_call_id="c1", name=each.tool),
            ]
        if each.image:
            image = {"type": "image_url", "image_url": {"url": _data_url()}}
            text = [{"type": "text", "text": each.text}] if each.text else []
            return [HumanMessage(content=[*text, image])]
        kinds = {"user": HumanMessage, "assistant": AIMessage, "system": SystemMessage}
        return [kinds[each.role](content=each.text)]


DRIVERS: Mapping[str, Driver] = {
    "openai-chat": OpenAIChat(),
    "openai-chat-stream": OpenAIChat(streams=True),
    "openai-responses": OpenAIResponses(),
    "openai-responses-stream": OpenAIResponses(streams=True),
    "anthropic": AnthropicMessages(),
    "anthropic-stream": AnthropicMessages(streams=True),
    "genai": Genai(),
    "genai-stream": Genai(streams=True),
    "langchain-openai": LangChain("openai", format="openai_chat"),
    "langchain-openai-responses": LangChain("openai", format="openai_responses"),
    "langchain-openai-stream": LangChain("openai", streams=True, format="openai_chat"),
    "langchain-anthropic": LangChain("anthropic", format="anthropic"),
    "langchain-anthropic-stream": LangChain("anthropic", streams=True, format="anthropic"),
    "langchain-google": LangChain("google", format="gemini"),
    "langchain-google-stream": LangChain("google", streams=True, format="gemini"),
}


def _data_url() -> str:
    return f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"
