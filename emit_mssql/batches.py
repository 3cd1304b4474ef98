"""GO batches of a T-SQL script.

The settings stand in a batch of their own, because they act when a batch is parsed. A tool that
does not stop at an error (`sqlcmd` without -b) goes on with the next batch after xact_abort has
rolled back, so each later batch first makes sure that the transaction still stands: then nothing
is half done.
"""

from __future__ import annotations

from collections.abc import Sequence

# What indexes and filtered indexes ask of the session, and xact_abort for the transaction.
SETTINGS = (
    "set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,\n"
    "    concat_null_yields_null on;\n"
    "set numeric_roundabort off;\n"
    "set xact_abort on;\n"
    "set nocount on;"
)
GUARD = "if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;"
# Where this file is read in another encoding than UTF-8, é is another character.
UTF8_CHECK = (
    "if unicode(N'é') <> 233 throw 70004, N'read this script as UTF-8: sqlcmd -f 65001', 1;"
)
NEEDED_RUNTIME = 2
"""The oldest runtime that has every column written to."""
BEGIN = f"""\
if @@trancount > 0 throw 70003, N'run the deploy script outside a transaction', 1;
set transaction isolation level read committed;
begin transaction;
exec wf.wf_require_runtime @version = {NEEDED_RUNTIME};
declare @v_lock int;
exec @v_lock = sys.sp_getapplock @Resource = N'wf.deploy', @LockMode = N'Exclusive',
    @LockOwner = N'Transaction', @LockTimeout = 60000;
if @v_lock < 0 throw 70009, N'another deploy is running', 1;"""
COMMIT = "commit transaction;"


def join_batches(first: str, later: Sequence[str]) -> str:
    """Joins the settings, the first batch (which begins the transaction) and guarded ones."""
    guarded = (f"{GUARD}\n\n{batch}" for batch in later)
    return "".join(f"{batch}\nGO\n\n" for batch in (SETTINGS, first, *guarded)).rstrip("\n") + "\n"
