"""Two hundred users with tokens of their own, through one process: `make bench-users`."""
