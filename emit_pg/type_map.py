"""SQL types by column kind in PostgreSQL.

Literals in VALUES have no type of their own there, and a column of nulls becomes text, so every
column that is not text is cast where it is selected.
"""

CAST_TYPES = {"integer": "integer", "bigint": "bigint", "boolean": "boolean", "json": "jsonb"}
