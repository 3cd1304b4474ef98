-- Reuse of iterations (S9): keys, hits, entries. Twin: pg/wf_foreach_bundles.sql, whose header says why
-- an entry's key holds the transaction that wrote it.
--
-- Here the writer's number is the one that the engine's run has drawn of wf.node_execution_id_seq
-- (#call.first_new_id): no two runs have one in common. The hints (readpast) only spare waits.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- The items of the FOREACHs around one, outermost first, as canonical JSON with commas between.
create or alter function wf.wf_foreach_enclosing_items(@node_execution_id bigint)
returns nvarchar(max)
as
begin
    declare @v_id bigint = @node_execution_id;
    declare @v_parent_id bigint;
    declare @v_is_iteration bit;
    declare @v_value_json nvarchar(max);
    declare @v_items nvarchar(max);

    while 1 = 1
    begin
        set @v_parent_id = null;
        select @v_parent_id = e.parent_execution_id,
               @v_is_iteration = case when n.is_loop_body = 1 and n.parent_type = N'FOREACH'
                                      then 1 else 0 end,
               @v_value_json = v.value_json
          from wf.node_execution as e
          join wf.workflow_node as n on n.node_id = e.node_id
          left join wf.scope_variable as v
            on v.scope_id = e.node_execution_id and v.name = n.loop_item_name
         where e.node_execution_id = @v_id;
        if @v_parent_id is null break;
        if @v_is_iteration = 1
            set @v_items = concat(wf.wf_canonical_json(@v_value_json, 0), N',' + @v_items);
        set @v_id = @v_parent_id;
    end;
    return coalesce(@v_items, N'');
end;
GO

-- What the iterations of a FOREACH read from outside (S9.1) as canonical JSON with commas between:
-- [value] for what is there, [] for what is not. All of it is the same in every iteration but the
-- index, for which nchar(1) stands, and ctx.iterationNo, nchar(2): neither can be part of canonical
-- JSON.
create or alter procedure wf.wf_foreach_outer_reads
    @node_execution_id bigint,
    @reads_json nvarchar(max),
    @body_key nvarchar(200),
    @index_name nvarchar(200),
    @texts nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_index int = 0;
    declare @v_read_json nvarchar(max);
    declare @v_read_text nvarchar(max);
    declare @v_text nvarchar(max);
    declare @v_value_json nvarchar(max);
    declare @v_error_code int;
    declare @v_error_message nvarchar(max);
    declare @v_index_text nvarchar(max);

    if @index_name is not null
        set @v_index_text = wf.wf_canonical_json(
            concat(N'["var",', wf.wf_json_quote(@index_name), N',', wf.wf_json_quote(@body_key),
                   N',[]]'), 0);
    set @texts = null;
    while 1 = 1
    begin
        set @v_read_json = null;
        select @v_read_json = r.value from openjson(@reads_json) as r
         where r.[key] = cast(@v_index as nvarchar(20));
        if @v_read_json is null break;
        set @v_index = @v_index + 1;
        set @v_read_text = wf.wf_canonical_json(@v_read_json, 0);
        if @v_read_text = N'["ctx","index",[]]' collate Latin1_General_100_BIN2
           or @v_read_text = @v_index_text collate Latin1_General_100_BIN2
            set @v_text = concat(N'[', nchar(1), N']');
        else if @v_read_text = N'["ctx","iterationNo",[]]' collate Latin1_General_100_BIN2
            set @v_text = concat(N'[', nchar(2), N']');
        else
        begin
            exec wf.wf_resolve_reference @ref = @v_read_json, @execution_id = @node_execution_id,
                @value_json = @v_value_json output, @error_code = @v_error_code output,
                @error_message = @v_error_message output;
            set @v_text = case when @v_error_code is null
                then concat(N'[', wf.wf_canonical_json(@v_value_json, 0), N']') else N'[]' end;
        end;
        set @texts = concat(@texts + N',', @v_text);
    end;
    set @texts = coalesce(@texts, N'');
end;
GO

-- Whether the instance's context says to run again what was run before.
create or alter function wf.wf_is_forced_rerun(@workflow_instance_id bigint) returns bit
as
begin
    return case when exists (
        select 1 from wf.execution_context as c
         where c.workflow_instance_id = @workflow_instance_id
           and wf.wf_json_member(c.context_json, N'forceRerun') = N'true')
        then 1 else 0 end;
end;
GO

-- Keeps every item of a FOREACH with its content key (S9.1) and, on a hit, what the iteration exported
-- before. `forceRerun` in the context knows no hits (S9.3).
create or alter procedure wf.wf_foreach_look_up
    @node_execution_id bigint,
    @items_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
    declare @v_key table (
        iteration_no int not null primary key,
        item_json nvarchar(max) collate Latin1_General_100_BIN2 not null,
        content_key nvarchar(64) collate Latin1_General_100_BIN2 not null
    );
    declare @v_self_id bigint = (select top (1) c.first_new_id from #call as c);
    declare @v_workflow nvarchar(200);
    declare @v_node_key nvarchar(200);
    declare @v_reuse_json nvarchar(max);
    declare @v_reads_json nvarchar(max);
    declare @v_body_key nvarchar(200);
    declare @v_index_name nvarchar(200);
    declare @v_is_forced bit;
    declare @v_before nvarchar(max);
    declare @v_after nvarchar(max);

    select @v_workflow = d.name, @v_node_key = n.node_key,
           @v_reuse_json = json_query(n.attributes_json, N'$.reuse'), @v_body_key = b.node_key,
           @v_index_name = b.loop_index_name,
           @v_is_forced = wf.wf_is_forced_rerun(e.workflow_instance_id)
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
      join wf.workflow_node as b on b.node_id = n.first_child_id
      join wf.workflow_version as w on w.workflow_version_id = n.workflow_version_id
      join wf.workflow_def as d on d.workflow_def_id = w.workflow_def_id
     where e.node_execution_id = @node_execution_id;
    set @v_reads_json = wf.wf_json_member(@v_reuse_json, N'reads');
    exec wf.wf_foreach_outer_reads @node_execution_id = @node_execution_id,
        @reads_json = @v_reads_json, @body_key = @v_body_key, @index_name = @v_index_name,
        @texts = @v_after output;
    set @v_before = concat(N'[', wf.wf_canonical_json(wf.wf_json_quote(@v_workflow), 0), N',',
        wf.wf_canonical_json(coalesce(wf.wf_json_member(@v_reuse_json, N'fingerprint'), N'null'), 0),
        N',', wf.wf_canonical_json(wf.wf_json_quote(@v_node_key), 0), N',');
    set @v_after = concat(N',[', wf.wf_foreach_enclosing_items(@node_execution_id), N'],[',
                          @v_after, N']]');
    insert into @v_key (iteration_no, item_json, content_key)
    select cast(i.[key] as int), wf.wf_json_text(i.value, i.type),
           wf.wf_sha256_hex(cast(concat(@v_before,
               wf.wf_canonical_json(wf.wf_json_text(i.value, i.type), 0),
               replace(replace(@v_after collate Latin1_General_100_BIN2, nchar(1), i.[key]),
                       nchar(2), cast(cast(i.[key] as int) + 1 as nvarchar(20))))
               as varchar(max)))
      from openjson(@items_json) as i;
    insert into wf.foreach_item (node_execution_id, iteration_no, item_json, content_key,
                                 known_json)
    select @node_execution_id, k.iteration_no, k.item_json, k.content_key,
           case when @v_is_forced = 0 then (
               select top (1) b.exported_json
                 from wf.foreach_bundle_entry as b with (readpast)
                where b.content_key = k.content_key and b.writer_id <> @v_self_id
                order by b.writer_id) end
      from @v_key as k;
end;
GO

-- Goes on from iteration @from of a FOREACH with `reuse`: skips those that are known, until @slots
-- others have been found, which are to start, or there are no more. Answers the numbers of those to
-- start, a JSON array, how many were skipped, and the first iteration not looked at. A skipped
-- iteration is an execution that has ended as SKIPPED, with its loop variables and the output it had
-- (S9.3); nothing below it is activated. Locks: none; the caller holds the gate, and the counter's row
-- if there is one.
create or alter procedure wf.wf_foreach_skip_known
    @node_execution_id bigint,
    @from int,
    @slots int,
    @now datetime2(3),
    @started nvarchar(max) output,
    @skipped_count int output,
    @next_index int output
as
begin
    set nocount, xact_abort on;
    declare @v_started table (iteration_no int not null primary key);
    declare @v_new table (new_id bigint not null primary key);
    declare @v_skipped table (
        new_id bigint not null primary key,
        iteration_no int not null
    );

    insert into @v_started (iteration_no)
    select top (coalesce(@slots, 2147483647)) f.iteration_no
      from wf.foreach_item as f
     where f.node_execution_id = @node_execution_id and f.iteration_no >= @from
       and f.known_json is null
     order by f.iteration_no;
    if (select count(*) from @v_started as s) = @slots
        select @next_index = max(s.iteration_no) + 1 from @v_started as s;
    else
        select @next_index = max(f.iteration_no) + 1 from wf.foreach_item as f
         where f.node_execution_id = @node_execution_id;
    set @started = concat(N'[', (
        select string_agg(cast(s.iteration_no as nvarchar(max)), N',')
                   within group (order by s.iteration_no)
          from @v_started as s), N']');
    -- A sequence gives its numbers in no order, so the order is made afterwards.
    insert into @v_new (new_id)
    select next value for wf.node_execution_id_seq
      from wf.foreach_item as f
     where f.node_execution_id = @node_execution_id and f.iteration_no >= @from
       and f.iteration_no < @next_index and f.known_json is not null;
    insert into @v_skipped (new_id, iteration_no)
    select d.new_id, i.iteration_no
      from (select w.new_id, row_number() over (order by w.new_id) as position
              from @v_new as w) as d
      join (select f.iteration_no, row_number() over (order by f.iteration_no) as position
              from wf.foreach_item as f
             where f.node_execution_id = @node_execution_id and f.iteration_no >= @from
               and f.iteration_no < @next_index and f.known_json is not null) as i
        on i.position = d.position;
    set @skipped_count = @@rowcount;
    if @skipped_count = 0 return;
    insert into wf.node_execution (node_execution_id, workflow_instance_id, parent_execution_id,
        node_id, iteration_no, scope_id, join_parent_id, status, attempt_no, result_code,
        output_json, created_at, ended_at)
    select x.new_id, e.workflow_instance_id, @node_execution_id, n.first_child_id,
           x.iteration_no, x.new_id, @node_execution_id, N'SKIPPED', 1, 0,
           nullif(f.known_json, N'{}'), @now, @now
      from @v_skipped as x
      join wf.foreach_item as f
        on f.node_execution_id = @node_execution_id and f.iteration_no = x.iteration_no
      join wf.node_execution as e on e.node_execution_id = @node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id;
    insert into wf.scope (scope_id, parent_scope_id, workflow_instance_id, owner_key)
    select x.new_id, e.scope_id, e.workflow_instance_id, b.node_key
      from @v_skipped as x
      join wf.node_execution as e on e.node_execution_id = @node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
      join wf.workflow_node as b on b.node_id = n.first_child_id;
    insert into wf.scope_variable (scope_id, name, value_json)
    select x.new_id, b.loop_item_name, f.item_json
      from @v_skipped as x
      join wf.foreach_item as f
        on f.node_execution_id = @node_execution_id and f.iteration_no = x.iteration_no
      join wf.node_execution as e on e.node_execution_id = @node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
      join wf.workflow_node as b on b.node_id = n.first_child_id
    union all
    select x.new_id, b.loop_index_name, cast(x.iteration_no as nvarchar(20))
      from @v_skipped as x
      join wf.node_execution as e on e.node_execution_id = @node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
      join wf.workflow_node as b on b.node_id = n.first_child_id
     where b.loop_index_name is not null;
end;
GO

-- The same for callers from outside: one row.
create or alter procedure wf.wf_foreach_caas_try_skip_body
    @node_execution_id bigint,
    @from int,
    @slots int,
    @now datetime2(3)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_started nvarchar(max);
    declare @v_skipped_count int;
    declare @v_next_index int;

    exec wf.wf_foreach_skip_known @node_execution_id = @node_execution_id, @from = @from,
        @slots = @slots, @now = @now, @started = @v_started output,
        @skipped_count = @v_skipped_count output, @next_index = @v_next_index output;
    select @v_started as started, @v_skipped_count as skipped_count,
           @v_next_index as next_index;
end;
GO

-- The first iterations of a FOREACH with `reuse` whose counter is there: @width that are not known, as
-- START steps; when all are known, its own SUCCEED step. Adds to #step; reads #call (now).
create or alter procedure wf.wf_foreach_start_unknown
    @ordinal int,
    @node_execution_id bigint,
    @items_json nvarchar(max),
    @width int
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3) = (select top (1) c.now from #call as c);
    declare @v_started nvarchar(max);
    declare @v_skipped_count int;
    declare @v_next_index int;
    declare @v_count int;
    declare @v_instance_id bigint;

    exec wf.wf_foreach_look_up @node_execution_id = @node_execution_id,
        @items_json = @items_json;
    exec wf.wf_foreach_skip_known @node_execution_id = @node_execution_id, @from = 0,
        @slots = @width, @now = @v_now, @started = @v_started output,
        @skipped_count = @v_skipped_count output, @next_index = @v_next_index output;
    select @v_count = count(*) from openjson(@v_started) as s;
    update wf.join_counter
       set open_count = @v_count, next_index = @v_next_index, succeeded_count = @v_skipped_count
     where node_execution_id = @node_execution_id;
    select @v_instance_id = e.workflow_instance_id from wf.node_execution as e
     where e.node_execution_id = @node_execution_id;
    if @v_count = 0
        exec wf.wf_succeed_step @ordinal = @ordinal, @node_execution_id = @node_execution_id,
            @workflow_instance_id = @v_instance_id;
    else
        insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id, node_id,
                           iteration_no, item_json)
        select @ordinal, f.iteration_no, N'START', @node_execution_id, @v_instance_id,
               n.first_child_id, f.iteration_no, f.item_json
          from openjson(@v_started) as s
          join wf.foreach_item as f
            on f.node_execution_id = @node_execution_id and f.iteration_no = cast(s.value as int)
          join wf.node_execution as e on e.node_execution_id = @node_execution_id
          join wf.workflow_node as n on n.node_id = e.node_id
         order by f.iteration_no;
end;
GO

-- Lets the counter of a FOREACH with `reuse`, whose row the caller has locked and which has just given
-- out iteration last_started, pass over those that are known: last_started is null afterwards when
-- there is nothing left to start. Reads #call (now).
create or alter procedure wf.wf_foreach_skip_ahead
    @node_execution_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3) = (select top (1) c.now from #call as c);
    declare @v_from int;
    declare @v_started nvarchar(max);
    declare @v_skipped_count int;
    declare @v_next_index int;

    select @v_from = c.last_started from wf.join_counter as c
     where c.node_execution_id = @node_execution_id;
    exec wf.wf_foreach_skip_known @node_execution_id = @node_execution_id, @from = @v_from,
        @slots = 1, @now = @v_now, @started = @v_started output,
        @skipped_count = @v_skipped_count output, @next_index = @v_next_index output;
    update wf.join_counter
       set last_started = cast(json_value(@v_started, N'$[0]') as int),
           next_index = @v_next_index,
           open_count = open_count - case when @v_started = N'[]' then 1 else 0 end,
           succeeded_count = succeeded_count + @v_skipped_count
     where node_execution_id = @node_execution_id;
end;
GO

-- Keeps what iterations that have just succeeded export, for later FOREACHs (S9.2). The first writer
-- wins, unless `forceRerun` replaces what is there. Reads #exported (seq, node_execution_id,
-- exported_json), a table of the caller, and #call (now). Locks: entries that it replaces.
create or alter procedure wf.wf_foreach_keep_bundles
as
begin
    set nocount, xact_abort on;
    declare @v_entry table (
        seq bigint not null primary key,
        content_key nvarchar(64) collate Latin1_General_100_BIN2 not null,
        workflow_name nvarchar(200) collate Latin1_General_100_BIN2 not null,
        node_key nvarchar(200) collate Latin1_General_100_BIN2 not null,
        exported_json nvarchar(max) collate Latin1_General_100_BIN2 not null,
        workflow_instance_id bigint not null,
        is_forced bit not null
    );
    declare @v_self_id bigint = (select top (1) c.first_new_id from #call as c);

    insert into @v_entry (seq, content_key, workflow_name, node_key, exported_json,
                          workflow_instance_id, is_forced)
    select u.seq, f.content_key, d.name, n.node_key, u.exported_json, e.workflow_instance_id,
           wf.wf_is_forced_rerun(e.workflow_instance_id)
      from #exported as u
      join wf.node_execution as e on e.node_execution_id = u.node_execution_id
      join wf.foreach_item as f
        on f.node_execution_id = e.parent_execution_id and f.iteration_no = e.iteration_no
      join wf.node_execution as p on p.node_execution_id = e.parent_execution_id
      join wf.workflow_node as n on n.node_id = p.node_id
      join wf.workflow_version as w on w.workflow_version_id = n.workflow_version_id
      join wf.workflow_def as d on d.workflow_def_id = w.workflow_def_id;
    delete b
      from wf.foreach_bundle_entry as b with (rowlock, readpast)
     where b.content_key in (select x.content_key from @v_entry as x where x.is_forced = 1)
       and b.writer_id <> @v_self_id;
    insert into wf.foreach_bundle_entry (content_key, writer_id, workflow_name, node_key,
        exported_json, created_by_instance_id, created_at)
    select x.content_key, @v_self_id, x.workflow_name, x.node_key, x.exported_json,
           x.workflow_instance_id, c.now
      from @v_entry as x
     cross join #call as c
     where x.seq = (select min(o.seq) from @v_entry as o where o.content_key = x.content_key)
       and not exists (select 1 from wf.foreach_bundle_entry as b
                        where b.content_key = x.content_key and b.writer_id = @v_self_id)
       and (x.is_forced = 1 or not exists (
            select 1 from wf.foreach_bundle_entry as b with (readpast)
             where b.content_key = x.content_key));
end;
GO

-- Removes up to @limit entries that were written before @created_before, of one workflow or of all.
-- Call it until it answers 0. Locks: the entries. Errors: 20004 an argument is missing or out of
-- bounds.
create or alter procedure wf.sp_purge_bundles
    @created_before datetime2(3),
    @workflow_name nvarchar(4000) = null,
    @limit int = 1000
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_entry table (
        content_key nvarchar(64) collate Latin1_General_100_BIN2 not null,
        writer_id bigint not null,
        primary key (content_key, writer_id)
    );
    declare @v_count int;

    if @created_before is null or @limit is null or @limit not between 1 and 10000
        throw 70004, N'created_before must be a time and limit between 1 and 10000', 1;
    insert into @v_entry (content_key, writer_id)
    select top (@limit) b.content_key, b.writer_id
      from wf.foreach_bundle_entry as b with (readpast)
     where b.created_at < @created_before
       and (@workflow_name is null or b.workflow_name = @workflow_name)
     order by b.created_at;
    delete b
      from wf.foreach_bundle_entry as b
      join @v_entry as x on x.content_key = b.content_key and x.writer_id = b.writer_id;
    set @v_count = @@rowcount;
    select @v_count as purged_count;
end;
GO
