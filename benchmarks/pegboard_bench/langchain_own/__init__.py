"""LangChain's own tests of its agents, with `ToolAttentionMiddleware` in every agent that they make."""
