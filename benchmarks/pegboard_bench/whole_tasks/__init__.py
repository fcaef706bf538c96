"""Whole tasks over real MCP servers: is the work done, with how many tokens, by each way to give an agent its tools."""
