-- The roles that rights are given to. Twin: pg/00_roles.sql
--
-- Roles belong to the database. They are made when they are missing and never dropped, since people
-- are members of them. There is no wf_owner: schema wf belongs to who installs it, and so does all that
-- stands in it, so that a procedure may do in the tables what its caller may not (ownership chaining).
-- An installation without roles leaves this file and 99_permissions.sql out.
-- Errors: 15247 the login may not make a role; ALTER ANY ROLE or db_owner may.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Deploys: adds definition rows and publishes them (R3).
if database_principal_id(N'wf_author') is null create role wf_author;
GO

-- Workers and gateways: claims and submits, takes in events, creates, starts.
if database_principal_id(N'wf_gateway') is null create role wf_gateway;
GO

-- Looks at everything, cancels, pauses, drains, purges.
if database_principal_id(N'wf_operator') is null create role wf_operator;
GO

-- Looks: views and the trace, where sensitive values are masked.
if database_principal_id(N'wf_reader') is null create role wf_reader;
GO
