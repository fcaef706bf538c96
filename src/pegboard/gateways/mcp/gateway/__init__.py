"""What clients are listed, and what happens to their calls. Start with `gateway.py`; `host.py` shares one fleet among
gateways."""
