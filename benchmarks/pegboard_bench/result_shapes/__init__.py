"""What shaped results save, and whether what they say can be found again (`make bench-results`).

The recordings beside this module are results of real servers from PyPI and npm (`scripts/record_results.py`). The HTML
pages among them are of the documentation of Rust (MIT or Apache-2.0).
"""
