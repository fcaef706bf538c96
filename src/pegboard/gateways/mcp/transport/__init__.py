"""The protocol on the wire: stdio and HTTP, both eras, authentication, pagination, and requests from servers to
clients."""
