"""`python -m wfsql` is the `wf` command."""

import sys

from wfsql.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
