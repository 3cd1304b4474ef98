"""The PostgreSQL emitter: a GraphSpec becomes a deploy script of row inserts."""
