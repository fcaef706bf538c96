"""The door for LangChain and LangGraph agents. Read `middleware.py` first.

| module | what it knows |
|---|---|
| `middleware` | LangChain's hooks: a model is called, a tool is called |
| `attention` | the seed's contract, `before_model` and `after_model`, for nodes and loops of one's own |
| `rendering` | a decision as a request: schemas in ``tools``, or text and one constant tool |
| `gate` | a call's tool, or the refusal that the model is told |
| `reading` | LangChain's messages and state, as a turn and its facts |
| `toolsets` | the tools of each request, and the board that chooses among them |
| `tools` | LangChain's tools as the board's, and the board's as LangChain's |
| `state` | what is checkpointed |
"""

from pegboard.extras import required

required("langchain.agents.middleware", "langchain")

from pegboard.gateways.langchain.attention import Request, Response, ToolAttention  # noqa: E402 - after the check
from pegboard.gateways.langchain.middleware import ToolAttentionMiddleware  # noqa: E402
from pegboard.gateways.langchain.state import ToolAttentionState  # noqa: E402

__all__ = ["Request", "Response", "ToolAttention", "ToolAttentionMiddleware", "ToolAttentionState"]
