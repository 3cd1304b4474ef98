"""How many actions the engine in PostgreSQL dispatches in a second, and what each costs the server."""
