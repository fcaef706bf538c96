"""A LangChain agent whose model sees the few tools that its turn needs, and can call no other.

python examples/langchain_agent.py
"""

from langchain.agents import create_agent

from pegboard.gateways.langchain import ToolAttentionMiddleware
from pegboard.gateways.langchain.scripted_model import ScriptedModel, calls


def high_tide(harbour: str) -> str:
    """When the tide is high at a harbour"""
    return f"{harbour}: 04:05 and 16:20"


def renew_loan(book: str) -> str:
    """Renew the loan of a library book"""
    return f"{book}: renewed for three weeks"


model = ScriptedModel(steps=[calls(("high_tide", {"harbour": "Bergen"})), "At 04:05 and 16:20."])  # any chat model
agent = create_agent(model, tools=[high_tide, renew_loan], middleware=[ToolAttentionMiddleware(k=5)])


def main() -> list[str]:
    out = agent.invoke({"messages": [{"role": "user", "content": "when is high tide in Bergen?"}]})
    return [message.text for message in out["messages"] if message.text]


if __name__ == "__main__":
    print(*main(), sep="\n")
