-- Rights: nothing in schema wf is executable by PUBLIC. Twin: mssql/99_permissions.sql
--
-- The roles of the runtime and their grants are not part of this file yet: the installing user owns
-- everything.
revoke all on schema wf from public;
revoke all on all routines in schema wf from public;
revoke all on all tables in schema wf from public;
