"""Writes docs/mssql-conformance.md from a run of the tests on a SQL Server.

    python -m pytest tests/conformance tests/runtime_sql -k "sql_server or tsql" --junitxml=run.xml
    python -m tests.mssql_report run.xml > docs/mssql-conformance.md

`--wait SECONDS` only waits until the server of WF_MSSQL_URL answers.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from runtime_sql.failures import DatabaseProblem
from runtime_sql.mssql_driver import connect_mssql
from wfsql.testing.mssql import URL_VARIABLE

# What a server that is not SQL Server cannot show, and why it holds there: Microsoft's own words.
_DOCS = "https://learn.microsoft.com/en-us/sql/t-sql"
NOT_PROVABLE: tuple[tuple[str, str, str], ...] = (
    (
        "Claims pass by rows that another claim holds",
        "`readpast` skips a locked row under READ COMMITTED instead of waiting for it",
        f"{_DOCS}/queries/hints-transact-sql-table",
    ),
    (
        "A candidate that was read is not taken by another before it is written",
        "`updlock` and `rowlock` hold update locks on the rows read; the update's own `where`"
        " decides also without them",
        f"{_DOCS}/queries/hints-transact-sql-table",
    ),
    (
        "Under READ_COMMITTED_SNAPSHOT off, readers wait for writers and do not deadlock",
        "locks are taken in one order; a victim (1205) is rolled back whole and repeated",
        f"{_DOCS}/statements/set-transaction-isolation-level-transact-sql",
    ),
    (
        "No call comes near 32 nested levels",
        "@@NESTLEVEL counts procedures, functions and triggers; the stand-in counts and has no"
        " limit",
        f"{_DOCS}/functions/nestlevel-transact-sql",
    ),
    (
        "A role sees and executes what it is granted, and nothing else",
        "ownership chaining: EXECUTE on a procedure is enough for the tables that it uses",
        "https://learn.microsoft.com/en-us/sql/relational-databases/security/authentication-access"
        "/ownership-and-user-schema-separation",
    ),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One test of a run. `detail` is the first line of what it said."""

    name: str
    verdict: str
    detail: str


def read_outcomes(junit: str) -> list[Outcome]:
    """Reads a JUnit report."""
    outcomes = []
    for case in ElementTree.fromstring(junit).iter("testcase"):
        verdict, detail = "passed", ""
        for child in case:
            if child.tag in ("failure", "error", "skipped"):
                verdict = "skipped" if child.tag == "skipped" else "failed"
                detail = (child.get("message") or "").splitlines()[0:1]
                detail = detail[0] if detail else ""
        place = (case.get("classname") or "").replace(".", "/")
        outcomes.append(Outcome(f"{place}: {case.get('name')}", verdict, detail))
    return outcomes


def page(server: str, date: str, outcomes: Sequence[Outcome]) -> str:
    """Returns the page: the server, counts per file, every failure, what cannot be shown."""
    totals = Counter(outcome.verdict for outcome in outcomes)
    lines = [
        "# The T-SQL tree on a server",
        "",
        "Written by `python -m tests.mssql_report` from one run.",
        "",
        f"- Server: {server}",
        f"- Date: {date}",
        f"- Tests: {totals['passed']} passed, {totals['failed']} failed,"
        f" {totals['skipped']} skipped",
        "",
    ]
    if "Microsoft SQL Server" not in server:
        lines += [
            "**This is a TDS server that is not SQL Server.** It runs the same T-SQL; its locks,"
            " its",
            "optimizer and its rights are its own. What only SQL Server can show stands below.",
            "",
        ]
    lines += ["| tests | passed | failed | skipped |", "| --- | ---: | ---: | ---: |"]
    files = dict.fromkeys(outcome.name.partition(":")[0] for outcome in outcomes)
    for file in files:
        some = Counter(o.verdict for o in outcomes if o.name.partition(":")[0] == file)
        lines.append(f"| `{file}` | {some['passed']} | {some['failed']} | {some['skipped']} |")
    lines += ["", "## Failed", ""]
    failed = [o for o in outcomes if o.verdict == "failed"]
    lines += [f"- `{o.name}`: {_plain(o.detail)}" for o in failed] or ["None."]
    lines += ["", "## Skipped", ""]
    reasons = Counter(o.detail for o in outcomes if o.verdict == "skipped")
    lines += [f"- {number}: {_plain(why)}" for why, number in reasons.items()] or ["None."]
    lines += [
        "",
        "## Not provable on a stand-in",
        "",
        "Each with what SQL Server does and where it says so.",
        "",
        "| what holds | because | source |",
        "| --- | --- | --- |",
        *(f"| {what} | {why} | {source} |" for what, why, source in NOT_PROVABLE),
    ]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    return " ".join(text.split())[:200].replace("|", "\\|")


def server_version(patience_seconds: float = 0) -> str:
    """Returns what the server says of itself.

    Raises:
      SystemExit: it did not answer in time.
    """
    url = os.environ.get(URL_VARIABLE, "")
    give_up_at = time.monotonic() + patience_seconds
    while True:
        connection = connect_mssql(url)
        if not isinstance(connection, DatabaseProblem):
            [(version,)] = connection.rows("select @@version;")
            connection.close()
            return " ".join(str(version).split())
        if time.monotonic() >= give_up_at:
            raise SystemExit(f"error: {connection.message}")
        time.sleep(2)


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--wait"]:
        print(server_version(float(arguments[1])))
        return 0
    outcomes = read_outcomes(Path(arguments[0]).read_text(encoding="utf-8"))
    print(page(server_version(), time.strftime("%Y-%m-%d", time.gmtime()), outcomes), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
