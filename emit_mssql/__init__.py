"""The T-SQL emitter: a GraphSpec becomes a deploy script for SQL Server and Azure SQL."""
