"""Amazon Bedrock's Converse. Begin with `request.py`; `event_frames.py` has the framing of its streams."""
