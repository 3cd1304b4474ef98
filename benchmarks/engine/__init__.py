"""What the engine in PostgreSQL costs as its tables and its instances grow."""
