-- Scopes, the start context and the type table (R5). Twin: pg/06_scopes_and_types.sql
--
-- A scope row is one activation of a node that has variables. The engine inserts it with the
-- execution; what stands here fills it: the instance's inputs and variables at start, the
-- initialisers of a body when it opens (S2.3), `set` afterwards. Errors are values, as in
-- 05_runtime_parity.sql. No locks beyond the rows written, which belong to the caller's own
-- executions.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- What is wrong with one value by one row of the type table, not looking inside; null: nothing.
create or alter function wf.wf_type_misfit(
    @value nvarchar(max), @base_type nvarchar(20), @is_required bit, @is_nullable bit,
    @enum nvarchar(max)
) returns nvarchar(max)
as
begin
    declare @v_word nvarchar(7) = wf.wf_type_word(@value);
    declare @v_fits bit;
    declare @v_null nvarchar(10) = case when @is_nullable = 1 then N' or null' else N'' end;
    declare @v_choices nvarchar(max);
    if @value is null return case when @is_required = 1 then N'is missing' end;
    if @base_type = N'any' or @v_word = N'null' and @is_nullable = 1 return null;
    set @v_fits = case
        when @base_type = N'string' and @v_word = N'string' then 1
        when @base_type = N'bool' and @v_word = N'boolean' then 1
        when @base_type = N'number' and @v_word in (N'integer', N'decimal') then 1
        when @base_type = N'int' and @v_word = N'integer' then 1
        when @base_type = N'object' and @v_word = N'object' then 1
        when @base_type not in (N'string', N'bool', N'number', N'int', N'object')
             and @v_word = N'array' then 1
        else 0 end;
    if wf.wf_json_type(@enum) = N'array'
        set @v_choices = (
            select string_agg(case e.type when 2 then wf.wf_number_text(e.value)
                                          else wf.wf_json_text(e.value, e.type) end, N', ')
                       within group (order by cast(e.[key] as int))
              from openjson(@enum) as e);
    if @v_choices is not null
    begin
        if @v_fits = 1 and wf.wf_is_element(@value, @enum) = 1 return null;
        return concat(N'must be one of ', @v_choices, @v_null);
    end;
    if @v_fits = 1 return null;
    return concat(N'must be ',
        case @base_type when N'string' then N'string' when N'int' then N'an integer'
                        when N'number' then N'a number' when N'bool' then N'a boolean'
                        when N'object' then N'an object' else N'a list' end,
        @v_null, N', not ', @v_word);
end;
GO

-- Checks values against the type table, level by level: the values, then their fields and items,
-- and so on. Answers the text of the first misfit (level, then declaration order and index), or
-- null. Reads #check (ordinal int, place nvarchar(max), type_id int null, value_json nvarchar(max)
-- null), which the caller makes; a value that is SQL null is missing.
create or alter procedure wf.wf_check_values
    @version_id bigint,
    @misfit nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_value table (
        level_no int not null,
        ordinal int not null,
        place nvarchar(max) not null,
        type_id int null,
        value_json nvarchar(max) null,
        primary key (level_no, ordinal)
    );
    declare @v_level_no int = 0;
    declare @v_row_count int;

    set @misfit = null;
    insert into @v_value (level_no, ordinal, place, type_id, value_json)
    select 0, c.ordinal, c.place, c.type_id, c.value_json from #check as c;
    set @v_row_count = @@rowcount;
    while @v_row_count > 0
    begin
        select top (1) @misfit = concat(v.place, N': ', m.misfit)
          from @v_value as v
          join wf.data_type as t on t.workflow_version_id = @version_id and t.type_id = v.type_id
         cross apply (select wf.wf_type_misfit(v.value_json, t.base_type, t.is_required,
                                               t.is_nullable, t.enum_json) as misfit) as m
         where v.level_no = @v_level_no and m.misfit is not null
         order by v.ordinal;
        if @misfit is not null return;

        insert into @v_value (level_no, ordinal, place, type_id, value_json)
        select @v_level_no + 1,
               row_number() over (order by b.ordinal, b.place_in, b.type_id), b.place, b.type_id,
               b.value_json
          from (select v.ordinal, 0 as place_in, f.type_id,
                       concat(v.place, wf.wf_step_text(f.name, 1)) as place,
                       wf.wf_json_member(v.value_json, f.name) as value_json
                  from @v_value as v
                  join wf.data_type as f
                    on f.workflow_version_id = @version_id
                   and f.parent_type_id = v.type_id and f.path_kind = N'field'
                 where v.level_no = @v_level_no and wf.wf_json_type(v.value_json) = N'object'
                union all
                select v.ordinal, try_cast(i.[key] as int), f.type_id,
                       concat(v.place, N'[', i.[key], N']'), wf.wf_json_text(i.value, i.type)
                  from @v_value as v
                  join wf.data_type as f
                    on f.workflow_version_id = @version_id
                   and f.parent_type_id = v.type_id and f.path_kind = N'item'
                 cross apply openjson(case when wf.wf_json_type(v.value_json) = N'array'
                                           then v.value_json end) as i
                 where v.level_no = @v_level_no) as b;
        set @v_row_count = @@rowcount;
        set @v_level_no = @v_level_no + 1;
    end;
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
    create table #check (
        ordinal int not null,
        place nvarchar(max) not null,
        type_id int null,
        value_json nvarchar(max) null
    );
    insert into #check (ordinal, place, type_id, value_json)
    values (1, concat(N'input ', @name), @type_id, @value);
    exec wf.wf_check_values @version_id = @version_id, @misfit = @misfit output;
end;
GO

-- The error of writing a value to variable @name whose declared type is @type_id (R5), or nothing;
-- without a type everything fits.
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
    if @type_id is null return;
    create table #check (
        ordinal int not null,
        place nvarchar(max) not null,
        type_id int null,
        value_json nvarchar(max) null
    );
    insert into #check (ordinal, place, type_id, value_json)
    values (1, concat(N'var ', @name), @type_id, @value);
    exec wf.wf_check_values @version_id = @version_id, @misfit = @error_message output;
    if @error_message is not null set @error_code = 10015;
end;
GO

-- Writes variable @name of a scope, whether it has a value or not.
create or alter procedure wf.wf_put_scope_variable
    @scope_id bigint,
    @name nvarchar(200),
    @value nvarchar(max)
as
begin
    set nocount, xact_abort on;
    update wf.scope_variable set value_json = @value where scope_id = @scope_id and name = @name;
    if @@rowcount = 0
        insert into wf.scope_variable (scope_id, name, value_json)
        values (@scope_id, @name, @value);
end;
GO

-- Evaluates the initialisers of the variables that node @owner_key declares, in order, into the
-- scope of execution @execution_id; each sees those before it and must fit its type (10015, R5).
create or alter procedure wf.wf_fill_scope
    @execution_id bigint,
    @version_id bigint,
    @owner_key nvarchar(200),
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_order int = -1;
    declare @v_name nvarchar(200);
    declare @v_program nvarchar(max);
    declare @v_is_constant bit;
    declare @v_type_id int;
    declare @v_value nvarchar(max);

    set @error_code = null;
    set @error_message = null;
    while 1 = 1
    begin
        set @v_name = null;
        select top (1) @v_order = d.variable_order, @v_name = d.name, @v_program = d.program_json,
                       @v_is_constant = d.is_constant, @v_type_id = d.type_id
          from wf.node_scope_default as d
         where d.workflow_version_id = @version_id and d.owner_key = @owner_key
           and d.variable_kind = N'var' and d.program_json is not null
           and d.variable_order > @v_order
         order by d.variable_order;
        if @v_name is null return;
        exec wf.wf_eval_expression @program = @v_program, @execution_id = @execution_id,
            @value_json = @v_value output, @error_code = @error_code output,
            @error_message = @error_message output;
        if @error_code is null and @v_is_constant = 0
            exec wf.wf_check_variable @version_id = @version_id, @type_id = @v_type_id,
                @name = @v_name, @value = @v_value, @error_code = @error_code output,
                @error_message = @error_message output;
        if @error_code is not null return;
        exec wf.wf_put_scope_variable @scope_id = @execution_id, @name = @v_name, @value = @v_value;
    end;
end;
GO

-- Checks those parameters of an execution scope that have a declared type in node @owner_key, as
-- variables (R5). Reads #parameter (name nvarchar(200), value_json nvarchar(max)), which the caller
-- makes.
create or alter procedure wf.wf_check_parameters
    @version_id bigint,
    @owner_key nvarchar(200),
    @misfit nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    create table #check (
        ordinal int not null,
        place nvarchar(max) not null,
        type_id int null,
        value_json nvarchar(max) null
    );
    insert into #check (ordinal, place, type_id, value_json)
    select row_number() over (order by d.variable_kind, d.variable_order), concat(N'var ', d.name),
           d.type_id, p.value_json
      from wf.node_scope_default as d
      join #parameter as p on p.name = d.name
     where d.workflow_version_id = @version_id and d.owner_key = @owner_key
       and d.type_id is not null;
    exec wf.wf_check_values @version_id = @version_id, @misfit = @misfit output;
end;
GO

-- Opens the instance's scope: each input from the start context, its default or the execution
-- scope's parameters, in this order, then the check of their types (10015), then the other
-- parameters, then the workflow's variables, each seeing those before it. After an error nothing of
-- the scope is left.
create or alter procedure wf.wf_init_instance_scope_from_context
    @instance_id bigint,
    @root_execution_id bigint,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_version_id bigint;
    declare @v_owner_key nvarchar(200);
    declare @v_context nvarchar(max);
    declare @v_order int = -1;
    declare @v_name nvarchar(200);
    declare @v_type_id int;
    declare @v_program nvarchar(max);
    declare @v_is_required bit;
    declare @v_value nvarchar(max);
    create table #check (
        ordinal int not null,
        place nvarchar(max) not null,
        type_id int null,
        value_json nvarchar(max) null
    );
    create table #parameter (
        name nvarchar(200) collate Latin1_General_100_BIN2 not null primary key,
        value_json nvarchar(max) not null
    );

    set @error_code = null;
    set @error_message = null;
    select @v_version_id = n.workflow_version_id, @v_owner_key = n.node_key,
           @v_context = c.context_json
      from wf.workflow_instance as i
      join wf.workflow_version as w on w.workflow_version_id = i.workflow_version_id
      join wf.workflow_node as n on n.node_id = w.root_node_id
      left join wf.execution_context as c on c.workflow_instance_id = i.workflow_instance_id
     where i.workflow_instance_id = @instance_id;
    insert into #parameter (name, value_json)
    select p.[key], wf.wf_json_text(p.value, p.type)
      from wf.workflow_instance as i
      join wf.execution_scope as s on s.execution_scope_id = i.execution_scope_id
     cross apply openjson(s.parameters_json) as p
     where i.workflow_instance_id = @instance_id;
    insert into wf.scope (scope_id, parent_scope_id, workflow_instance_id, owner_key)
    select @root_execution_id, 0, @instance_id, @v_owner_key
     where not exists (select 1 from wf.scope as s where s.scope_id = @root_execution_id);

    while @error_code is null
    begin
        set @v_name = null;
        select top (1) @v_order = d.variable_order, @v_name = d.name, @v_type_id = d.type_id,
                       @v_program = d.program_json, @v_is_required = d.is_required
          from wf.node_scope_default as d
         where d.workflow_version_id = @v_version_id and d.owner_key = @v_owner_key
           and d.variable_kind = N'input' and d.variable_order > @v_order
         order by d.variable_order;
        if @v_name is null break;
        set @v_value = wf.wf_json_member(@v_context, @v_name);
        if @v_value is null and @v_program is not null
            exec wf.wf_eval_expression @program = @v_program, @execution_id = @root_execution_id,
                @value_json = @v_value output, @error_code = @error_code output,
                @error_message = @error_message output;
        if @error_code is not null break;
        if @v_value is null
            select @v_value = p.value_json from #parameter as p where p.name = @v_name;
        if @v_value is not null
            insert into wf.scope_variable (scope_id, name, value_json)
            values (@root_execution_id, @v_name, @v_value);
        insert into #check (ordinal, place, type_id, value_json)
        values (@v_order, concat(N'input ', @v_name), @v_type_id, @v_value);
        if @v_value is null and @v_is_required = 1 and @v_type_id is null
        begin
            set @error_code = 10015;
            set @error_message = concat(N'input ', @v_name, N': is missing');
        end;
    end;

    if @error_code is null
    begin
        -- Inputs took theirs apart, and an initialiser wins over a parameter.
        delete from #parameter
         where name in (select d.name
                          from wf.node_scope_default as d
                         where d.workflow_version_id = @v_version_id
                           and d.owner_key = @v_owner_key
                           and (d.variable_kind = N'input' or d.program_json is not null));
        exec wf.wf_check_values @version_id = @v_version_id, @misfit = @error_message output;
        if @error_message is null
            exec wf.wf_check_parameters @version_id = @v_version_id, @owner_key = @v_owner_key,
                @misfit = @error_message output;
        if @error_message is not null
            set @error_code = 10015;
        else
        begin
            insert into wf.scope_variable (scope_id, name, value_json)
            select @root_execution_id, p.name, p.value_json from #parameter as p;
            exec wf.wf_fill_scope @execution_id = @root_execution_id, @version_id = @v_version_id,
                @owner_key = @v_owner_key, @error_code = @error_code output,
                @error_message = @error_message output;
        end;
    end;
    if @error_code is not null
    begin
        delete from wf.scope_variable where scope_id = @root_execution_id;
        delete from wf.scope where scope_id = @root_execution_id;
    end;
end;
GO

-- Whether some variable that a node declares has an initialiser that must be evaluated or checked.
create or alter function wf.wf_has_computed_variable(
    @version_id bigint, @owner_key nvarchar(200)
) returns bit
as
begin
    return case when exists (
        select 1
          from wf.node_scope_default as d
         where d.workflow_version_id = @version_id and d.owner_key = @owner_key
           and d.variable_kind = N'var' and d.program_json is not null
           and d.is_constant = 0) then 1 else 0 end;
end;
GO

-- Fills the scopes of executions whose node declares variables (not the root; the scope rows are
-- there). Reads and writes #open (ordinal int, node_execution_id bigint, error_code int null,
-- error_message nvarchar(max) null), which the caller makes: those whose initialisers failed have
-- an error afterwards. Nodes whose initialisers are all literals are filled in one statement.
create or alter procedure wf.wf_open_scopes
as
begin
    set nocount, xact_abort on;
    declare @v_literal table (
        scope_id bigint not null,
        name nvarchar(200) collate Latin1_General_100_BIN2 not null,
        value_json nvarchar(max) not null,
        primary key (scope_id, name)
    );
    declare @v_computed table (
        place int identity(1, 1) not null primary key,
        node_execution_id bigint not null,
        version_id bigint not null,
        node_key nvarchar(200) collate Latin1_General_100_BIN2 not null
    );
    declare @v_place int = 0;
    declare @v_execution_id bigint;
    declare @v_version_id bigint;
    declare @v_node_key nvarchar(200);
    declare @v_error_code int;
    declare @v_error_message nvarchar(max);

    insert into @v_literal (scope_id, name, value_json)
    select o.node_execution_id, d.name, wf.wf_json_text(l.value, l.type)
      from #open as o
      join wf.node_execution as e on e.node_execution_id = o.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
      join wf.node_scope_default as d
        on d.workflow_version_id = n.workflow_version_id and d.owner_key = n.node_key
     cross apply openjson(d.program_json, '$[0]') as l
     where d.variable_kind = N'var' and d.program_json is not null and l.[key] = N'1'
       and wf.wf_has_computed_variable(n.workflow_version_id, n.node_key) = 0;
    if @@rowcount > 0
    begin
        delete v
          from wf.scope_variable as v
          join @v_literal as l on l.scope_id = v.scope_id and l.name = v.name;
        insert into wf.scope_variable (scope_id, name, value_json)
        select l.scope_id, l.name, l.value_json from @v_literal as l;
    end;

    insert into @v_computed (node_execution_id, version_id, node_key)
    select o.node_execution_id, n.workflow_version_id, n.node_key
      from #open as o
      join wf.node_execution as e on e.node_execution_id = o.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
     where wf.wf_has_computed_variable(n.workflow_version_id, n.node_key) = 1
     order by o.ordinal;
    while 1 = 1
    begin
        set @v_execution_id = null;
        select top (1) @v_place = c.place, @v_execution_id = c.node_execution_id,
                       @v_version_id = c.version_id, @v_node_key = c.node_key
          from @v_computed as c
         where c.place > @v_place
         order by c.place;
        if @v_execution_id is null return;
        exec wf.wf_fill_scope @execution_id = @v_execution_id, @version_id = @v_version_id,
            @owner_key = @v_node_key, @error_code = @v_error_code output,
            @error_message = @v_error_message output;
        if @v_error_code is not null
            update #open
               set error_code = @v_error_code, error_message = @v_error_message
             where node_execution_id = @v_execution_id;
    end;
end;
GO

-- Writes variable @name of the nearest scope, from @scope_id outwards, that node @owner_key opened.
-- Answers whether there is such a scope. The caller holds the instance's gate; parallel branches
-- never write one variable (S2.5).
create or alter procedure wf.wf_set_scope_variable
    @scope_id bigint,
    @owner_key nvarchar(200),
    @name nvarchar(200),
    @value nvarchar(max),
    @is_set bit output
as
begin
    set nocount, xact_abort on;
    declare @v_scope_id bigint = wf.wf_find_scope(@scope_id, @owner_key);
    set @is_set = case when @v_scope_id is null then 0 else 1 end;
    if @is_set = 1
        exec wf.wf_put_scope_variable @scope_id = @v_scope_id, @name = @name, @value = @value;
end;
GO
