"""What hostile servers, providers and clients can do to a gateway: how long it is deaf, and what memory it takes."""
