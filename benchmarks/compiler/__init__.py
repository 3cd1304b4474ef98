"""How long it takes to check a workflow, beside other checkers: `make bench-compiler`."""
