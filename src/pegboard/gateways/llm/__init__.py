"""Tools in model requests. Read `codec.py` first (the nouns), then `selecting.py` (what happens to one request)."""
