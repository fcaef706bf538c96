"""The tools tax measured: the tables of seed 000 with real definitions, every method beside every other."""
