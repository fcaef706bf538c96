"""Gemini `generateContent`. Begin with `request.py`; `parts.py` has the parts of answers, and JSON Schema from Gemini's
schemas."""
