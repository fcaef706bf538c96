"""The gateway for LangChain and LangGraph agents. Read `middleware.py` first.

| module | contents |
|---|---|
| `middleware` | LangChain's hooks: model calls and tool calls |
| `attention` | the paper's `before_model` and `after_model`, for your own nodes and loops |
| `model_request` | a decision as a request: schemas in ``tools``, or text and one constant tool |
| `exact_calls` | calls under their tools' exact names, and as the model writes them |
| `call_gate` | the tool that a call names, or the refusal for the model |
| `cache_aware` | the tools that a conversation keeps because of the prompt cache |
| `way_back` | the way back: a search for the tools that a request does not have |
| `messages` | LangChain's messages and state as a turn and its facts; what is checkpointed |
| `shaped_messages` | results in fewer tokens, in the messages of tools |
| `toolsets` | the tools of each request, and the board that selects among them |
| `tools` | LangChain's tools as the board's, and the board's as LangChain's |
| `scripted_model` | a chat model for tests and tutorials |
"""

from pegboard.extras import required

required("langchain.agents.middleware", "langchain")

from pegboard.gateways.langchain.attention import Request, Response, ToolAttention  # noqa: E402 - after the check
from pegboard.gateways.langchain.messages import ToolAttentionState  # noqa: E402
from pegboard.gateways.langchain.middleware import ToolAttentionMiddleware  # noqa: E402

__all__ = ["Request", "Response", "ToolAttention", "ToolAttentionMiddleware", "ToolAttentionState"]
