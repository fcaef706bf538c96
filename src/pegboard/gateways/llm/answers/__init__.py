"""What answers say: the tool calls that the model made, and the tokens it took. One module a wire format."""
