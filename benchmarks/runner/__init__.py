"""How long the local runner takes for a node, beside other interpreters: `make bench-runner`."""
