"""Sessions across several processes: which process owns one, forwarding to it, and recovery."""
