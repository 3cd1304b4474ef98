"""How many actions PostgreSQL dispatches in a second, and what each costs the server."""
