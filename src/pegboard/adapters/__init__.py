"""Adapters: the tools of a turn, the gate and the way back, in agent frameworks. Start with `selection.py`.

Each framework has one module, on that framework's own extension point, and imports it alone. LangChain's is
`pegboard.gateways.langchain`.

| module | what it gives |
|---|---|
| `selection` | what all have in common: the tools of a turn, refusals, searches |
| `boards` | a board for each set of tools, however many requests run at once |
| `call_history` | what a conversation says about its calls: refused, answered, found |
| `read_cache` | reads each tool object once |
| `agent_framework` | middleware for Microsoft Agent Framework |
| `autogen` | a workbench around the agent's own |
| `crewai` | a hook before model calls |
| `dspy` | a `ReAct` |
| `google_adk` | a plugin of a runner |
| `haystack` | hooks of an `Agent` |
| `llama_index` | an agent of workflows |
| `openai_agents` | an `Agent` and a `RunConfig` |
| `pydantic_ai` | a capability, a toolset, a strategy for `ToolSearch` |
| `smolagents` | a `ToolCallingAgent` |
| `strands` | a plugin with middleware |
"""
