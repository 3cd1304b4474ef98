"""What the engine in PostgreSQL does in a second under load, and what that costs the server."""
