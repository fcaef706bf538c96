"""The scanner of definitions, measured: false alarms on real tools, hits on planted poisons."""
