"""Resources and prompts of all servers. Start with `resources.py`."""
