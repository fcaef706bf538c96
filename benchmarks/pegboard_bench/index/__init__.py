"""What the indexes for vectors cost and find, beside the exact one."""
