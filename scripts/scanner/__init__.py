"""Attacks written for the scanner's classifier (`scripts/fit_scanner.py`), by family and language."""
