"""A fleet of real servers behind one gateway: tokens before and after, and what starting takes."""
