"""Whether agents of ten frameworks keep their control tools behind the LLM gateway, and end."""
