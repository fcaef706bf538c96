"""What state costs: the time of each kind of work on each store, and the room that sessions take."""
