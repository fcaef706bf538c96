"""Wire formats: reading and changing requests and answers, one folder per format, without I/O.

Begin with `protocol.py` (the data types, and what a codec does), then `registry.py` (all formats). A new format is a
folder and a row there.
"""
