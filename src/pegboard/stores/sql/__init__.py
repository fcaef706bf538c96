"""What SQLite and PostgreSQL share: records as rows (`tables`), and statements on pins, statistics and lessons."""
