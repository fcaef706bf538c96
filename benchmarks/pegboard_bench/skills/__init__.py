"""Skills of public repositories: found by whole bodies, and by descriptions alone."""
