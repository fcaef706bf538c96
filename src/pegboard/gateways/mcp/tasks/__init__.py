"""Tasks that servers run for clients, relayed in both eras. Start with `server_tasks.py`."""
