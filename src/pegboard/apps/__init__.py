"""Programs made of the library."""
