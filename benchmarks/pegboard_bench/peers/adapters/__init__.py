"""One module a peer, run by the Python of an environment that has the peer and not Pegboard (`protocol`)."""
