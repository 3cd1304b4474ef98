"""The local runner: runs a GraphSpec in this process, with the meaning the databases give it."""
