"""The protocol's own test suite, run against servers and against the gateway before them."""
