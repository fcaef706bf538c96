"""Benchmarks: each writes its figures to a file that anyone may hold us to (`results.write`)."""
