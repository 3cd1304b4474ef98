"""Other engines on PostgreSQL and the least that an engine must do, measured beside ours."""
