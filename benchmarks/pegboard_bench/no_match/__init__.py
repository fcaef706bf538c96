"""Is "nothing fits" told from "something fits"? Requests for tools that are on a board, and that were taken off it."""
