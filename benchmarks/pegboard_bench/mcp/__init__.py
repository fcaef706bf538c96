"""What a hop through a gateway costs: a direct call, the barest proxy, Pegboard and FastMCP's proxy side by side."""
