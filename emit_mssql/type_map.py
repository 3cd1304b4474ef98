"""SQL types by column kind in T-SQL.

A derived table of VALUES takes its types from the literals, and a column of nulls converts to
every type it is inserted into, so that nothing has to be cast.
"""

CAST_TYPES: dict[str, str] = {}
