"""The tools tax measured: the tables of Tool Attention with real definitions, every method beside every other."""
