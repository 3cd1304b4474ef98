-- Scopes, the start context and the type table (R5). Twin: pg/06_scopes_and_types.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Checks values against the type table, level by level: the first misfit, or null.
-- Reads #check (ordinal int, place nvarchar(max), type_id int null, value_json nvarchar(max) null),
-- which the caller makes: a value that is SQL null is missing.
create or alter procedure wf.wf_check_values
    @version_id bigint,
    @misfit nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    set @misfit = null;
end;
GO

-- The first misfit of one value, called `input <name>` in the text, or null.
create or alter procedure wf.wf_check_value_type
    @version_id bigint,
    @type_id int,
    @value nvarchar(max),
    @name nvarchar(200),
    @misfit nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    set @misfit = null;
end;
GO

-- The error (10015) of writing a value to a variable of a declared type (R5), or nothing.
create or alter procedure wf.wf_check_variable
    @version_id bigint,
    @type_id int,
    @name nvarchar(200),
    @value nvarchar(max),
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    set @error_code = null;
    set @error_message = null;
end;
GO

-- Evaluates the initialisers of the variables that @owner_key declares into a scope.
create or alter procedure wf.wf_fill_scope
    @execution_id bigint,
    @version_id bigint,
    @owner_key nvarchar(200),
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    set @error_code = null;
    set @error_message = null;
end;
GO

-- Opens the instance's scope: inputs, their types (10015), parameters, variables.
create or alter procedure wf.wf_init_instance_scope_from_context
    @instance_id bigint,
    @root_execution_id bigint,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    set @error_code = null;
    set @error_message = null;
end;
GO

-- Fills the scopes of executions whose node declares variables (not the root; the scope rows are
-- there). Reads and writes #open (ordinal int, node_execution_id bigint, error_code int null,
-- error_message nvarchar(max) null), which the caller makes: the error of initialisers that failed.
create or alter procedure wf.wf_open_scopes
as
begin
    set nocount, xact_abort on;
end;
GO

-- The nearest scope, from @scope_id outwards, that node @owner_key opened, or null.
create or alter function wf.wf_find_scope(@scope_id bigint, @owner_key nvarchar(200))
returns bigint
as
begin
    return null;
end;
GO

-- Writes a variable of the nearest scope, outwards, that @owner_key opened; @is_set 0: none is open.
create or alter procedure wf.wf_set_scope_variable
    @scope_id bigint,
    @owner_key nvarchar(200),
    @name nvarchar(200),
    @value nvarchar(max),
    @is_set bit output
as
begin
    set nocount, xact_abort on;
    set @is_set = null;
end;
GO
