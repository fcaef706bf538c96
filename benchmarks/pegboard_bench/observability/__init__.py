"""What the dashboard costs with a million decisions: pages, growth, the live view, and retention."""
