"""What the LLM gateway costs."""
