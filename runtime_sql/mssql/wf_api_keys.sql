-- Keys for those who are no workers, enrolment with such a key, and the life of workers' tokens (R26).
-- Twin: pg/wf_api_keys.sql
--
-- A key is `wf_<id>_<43 base64url characters>`, made by the client. Its 256 random bits need no slow
-- hash: what is kept is a SHA-256 over a salt and the whole key. It is found by its id and compared
-- over the whole digest, so no prefix leaks. The text of a key is in no row, view or message.
-- Lists are JSON arrays of texts.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- The id within a key; null when the text has not the form of one.
create or alter function wf.wf_api_key_id(@key nvarchar(4000)) returns nvarchar(200)
as
begin
    declare @v_end int = charindex(N'_', @key, 4);
    declare @v_id nvarchar(200);
    declare @v_secret nvarchar(200);

    if @key is null or len(@key + N'.') - 1 > 100 or @v_end < 12 return null;
    if left(@key, 3) collate Latin1_General_100_BIN2 <> N'wf_' return null;
    set @v_id = substring(@key, 4, @v_end - 4);
    set @v_secret = substring(@key, @v_end + 1, 100);
    if len(@v_id + N'.') - 1 not between 8 and 40 or len(@v_secret + N'.') - 1 <> 43
       or patindex(N'%[^a-z0-9]%', @v_id collate Latin1_General_100_BIN2) > 0
       or patindex(N'%[^A-Za-z0-9_-]%', @v_secret collate Latin1_General_100_BIN2) > 0
        return null;
    return @v_id;
end;
GO

-- A list without repeats, in order; a list that is missing is empty.
create or alter function wf.wf_sorted(@list nvarchar(max)) returns nvarchar(max)
as
begin
    return concat(N'[', (
        select string_agg(cast(wf.wf_json_quote(q.value) as nvarchar(max)), N',')
                   within group (order by q.value)
          from (select distinct j.value collate Latin1_General_100_BIN2 as value
                  from openjson(@list) as j) as q), N']');
end;
GO

-- Refuses, with 20004, roles that are unknown and what does not go with them.
create or alter procedure wf.wf_check_key_scope
    @roles nvarchar(max),
    @source nvarchar(4000),
    @event_types nvarchar(max),
    @capabilities nvarchar(max)
as
begin
    set nocount, xact_abort on;
    declare @v_sends bit = 0;
    declare @v_enrolls bit = 0;
    declare @v_types int = 0;
    declare @v_given int = 0;

    exec wf.wf_check_capabilities @capabilities = @event_types;
    exec wf.wf_check_capabilities @capabilities = @capabilities;
    exec wf.wf_check_capabilities @capabilities = @roles;
    if @roles is null or not exists (select 1 from openjson(@roles))
       or exists (select 1 from openjson(@roles) as r
                   where r.value collate Latin1_General_100_BIN2
                         not in (N'author', N'operator', N'reader', N'event_source', N'enroll')
                      or len(r.value + N'.') - 1 <> len(r.value))
        throw 70004,
            N'roles must be one or more of author, operator, reader, event_source and enroll', 1;
    select @v_sends = max(case when r.value = N'event_source' then 1 else 0 end),
           @v_enrolls = max(case when r.value = N'enroll' then 1 else 0 end)
      from openjson(@roles) as r;
    if @event_types is not null select @v_types = count(*) from openjson(@event_types);
    if @capabilities is not null select @v_given = count(*) from openjson(@capabilities);
    if @v_sends <> case when @source is null then 0 else 1 end
       or @v_sends <> case when @v_types = 0 then 0 else 1 end
        throw 70004, N'the role event_source, and no other, has a source and event types', 1;
    if @v_enrolls <> case when @v_given = 0 then 0 else 1 end
        throw 70004, N'the role enroll, and no other, has capabilities', 1;
    if @source is not null exec wf.wf_check_key @what = N'source', @value = @source;
end;
GO

-- Adds a key. @roles is a list of author, operator, reader, event_source and enroll. event_source
-- needs the one source and the event types that it may send; enroll needs the capabilities that it may
-- give to workers (`*`: any). @name is for people: one live key has it.
-- Locks: the application lock 'wf.api_key', so that two keys of one name are not added at a moment.
-- Errors: 20004 an argument is out of bounds, or a role lacks what it needs; 20009 busy; 20010 the id
-- or the name is in use.
create or alter procedure wf.sp_create_api_key
    @key nvarchar(4000),
    @name nvarchar(4000),
    @roles nvarchar(max),
    @source nvarchar(4000) = null,
    @event_types nvarchar(max) = null,
    @capabilities nvarchar(max) = null,
    @expires_at datetime2(3) = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_now datetime2(3) = wf.wf_now();
    declare @v_salt varbinary(64) = cast(newid() as binary(16));
    declare @v_id nvarchar(200) = wf.wf_api_key_id(@key);
    declare @v_result int;

    if @v_id is null
        throw 70004,
            N'key must be wf_, 8 to 40 lower-case letters or digits, _ and 43 base64url characters',
            1;
    exec wf.wf_check_key @what = N'name', @value = @name;
    exec wf.wf_check_key_scope @roles = @roles, @source = @source, @event_types = @event_types,
        @capabilities = @capabilities;
    if @expires_at <= @v_now throw 70004, N'expires_at must be in the future', 1;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec @v_result = sys.sp_getapplock @Resource = N'wf.api_key', @LockMode = N'Exclusive',
            @LockOwner = N'Transaction', @LockTimeout = 60000;
        if @v_result < 0 throw 70009, N'another key is being added; try again', 1;
        if exists (select 1 from wf.api_key as k
                    where k.key_id = @v_id or (k.name = @name and k.revoked_at is null))
            throw 70010, N'a key with this id, or a live one with this name, is there', 1;
        insert into wf.api_key (key_id, name, roles, source, event_types, capabilities, salt,
                                key_hash, created_at, expires_at)
        values (@v_id, @name, wf.wf_sorted(@roles), @source, wf.wf_sorted(@event_types),
                wf.wf_sorted(@capabilities), @v_salt, wf.wf_token_digest(@v_salt, @key), @v_now,
                @expires_at);
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select @v_id as key_id;
end;
GO

-- Ends a key for good. Revoking it again changes nothing. A gateway may remember for 30 seconds that
-- the key was good. Locks: the key's row. Errors: 20002 unknown key.
create or alter procedure wf.sp_revoke_api_key
    @key_id nvarchar(4000)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_message nvarchar(2000);

    update wf.api_key set revoked_at = coalesce(revoked_at, wf.wf_now())
     where key_id = @key_id and datalength(key_id) = datalength(@key_id);
    if @@rowcount = 0
    begin
        set @v_message = concat(N'there is no key ', left(@key_id, 200));
        throw 70002, @v_message, 1;
    end;
end;
GO

-- What the owner of a key may do. Says the same whether the key is unknown, expired or revoked.
-- Errors: 20001.
create or alter procedure wf.wf_api_key_authenticate
    @key nvarchar(4000)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_id nvarchar(200) = wf.wf_api_key_id(@key);

    if @v_id is null or not exists (
        select 1 from wf.api_key as k
         where k.key_id = @v_id and k.revoked_at is null
           and (k.expires_at is null or k.expires_at > wf.wf_now())
           and k.key_hash = wf.wf_token_digest(k.salt, @key))
        throw 70001, N'the key is not known or not valid any more', 1;
    select k.key_id, k.name, k.roles, k.source, k.event_types, k.capabilities, k.expires_at
      from wf.api_key as k
     where k.key_id = @v_id;
end;
GO

-- Registers a worker, or renews it, on behalf of the owner of an enrolment key. Neither what the
-- worker asks for nor what it had may go beyond the key's capabilities, so that nobody takes over a
-- worker of another kind. Locks: the worker's row, then as sp_register_worker.
-- Errors: 20001; 20004 an argument is out of bounds; 20008 the key may not do that; 20009 busy.
create or alter procedure wf.sp_enroll_worker
    @key nvarchar(4000),
    @worker_id nvarchar(4000),
    @worker_token nvarchar(4000),
    @capabilities nvarchar(max),
    @max_concurrency int = 1
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_id nvarchar(200) = wf.wf_api_key_id(@key);
    declare @v_roles nvarchar(max);
    declare @v_may nvarchar(max);

    select @v_roles = k.roles, @v_may = k.capabilities
      from wf.api_key as k
     where k.key_id = @v_id and k.revoked_at is null
       and (k.expires_at is null or k.expires_at > wf.wf_now())
       and k.key_hash = wf.wf_token_digest(k.salt, @key);
    if @v_may is null throw 70001, N'the key is not known or not valid any more', 1;
    if not exists (select 1 from openjson(@v_roles) as r where r.value = N'enroll')
        throw 70008, N'the key may not enroll workers', 1;
    exec wf.wf_check_capabilities @capabilities = @capabilities;
    if @capabilities is null or not exists (select 1 from openjson(@capabilities))
        throw 70004, N'capabilities must name at least one', 1;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        update wf.worker set desired_state = desired_state where worker_id = @worker_id;
        if not exists (select 1 from openjson(@v_may) as m where m.value = N'*')
        begin
            if exists (select c.value collate Latin1_General_100_BIN2 from openjson(@capabilities) as c
                       except
                       select m.value collate Latin1_General_100_BIN2 from openjson(@v_may) as m)
                throw 70008, N'the key may not give these capabilities', 1;
            if exists (select c.capability from wf.worker_capability as c
                        where c.worker_id = @worker_id
                       except
                       select m.value collate Latin1_General_100_BIN2 from openjson(@v_may) as m)
                throw 70008,
                    N'a worker of this name has capabilities that the key may not give', 1;
        end;
        exec wf.sp_register_worker @worker_id = @worker_id, @worker_token = @worker_token,
            @capabilities = @capabilities, @max_concurrency = @max_concurrency;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
end;
GO

-- Says when the tokens of a worker end; null: never. With @token_id that one alone.
-- Locks: the tokens' rows. Errors: 20002 unknown worker, or it has no such live token.
create or alter procedure wf.sp_set_worker_token_expiry
    @worker_id nvarchar(4000),
    @expires_at datetime2(3),
    @token_id nvarchar(4000) = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_message nvarchar(2000);
    declare @v_count int;

    update wf.worker_token set expires_at = @expires_at
     where worker_id = @worker_id and datalength(worker_id) = datalength(@worker_id)
       and token_id = coalesce(@token_id, token_id) and revoked_at is null;
    set @v_count = @@rowcount;
    if @v_count = 0
    begin
        set @v_message = concat(N'there is no such live token of worker ', left(@worker_id, 200));
        throw 70002, @v_message, 1;
    end;
    select @v_count as token_count;
end;
GO

-- Ends the tokens of a worker for good; with @token_id that one alone. What the worker has in hand
-- stays leased until its time runs out. Locks: the tokens' rows. Errors: as sp_set_worker_token_expiry.
create or alter procedure wf.sp_revoke_worker_token
    @worker_id nvarchar(4000),
    @token_id nvarchar(4000) = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_message nvarchar(2000);
    declare @v_count int;

    update wf.worker_token set revoked_at = wf.wf_now()
     where worker_id = @worker_id and datalength(worker_id) = datalength(@worker_id)
       and token_id = coalesce(@token_id, token_id) and revoked_at is null;
    set @v_count = @@rowcount;
    if @v_count = 0
    begin
        set @v_message = concat(N'there is no such live token of worker ', left(@worker_id, 200));
        throw 70002, @v_message, 1;
    end;
    select @v_count as token_count;
end;
GO

if object_id(N'wf.v_api_key', N'V') is not null drop view wf.v_api_key;
GO

-- One row per key, without what would let anybody use it.
create view wf.v_api_key as
select k.key_id, k.name, k.roles, k.source, k.event_types, k.capabilities, k.created_at, k.expires_at,
       k.revoked_at,
       cast(case when k.revoked_at is null and (k.expires_at is null or k.expires_at > wf.wf_now())
                 then 1 else 0 end as bit) as is_live
  from wf.api_key as k;
GO

if object_id(N'wf.v_worker_token', N'V') is not null drop view wf.v_worker_token;
GO

-- One row per token of a worker, by its id.
create view wf.v_worker_token as
select t.worker_id, t.token_id, t.created_at, t.expires_at, t.revoked_at,
       cast(case when t.revoked_at is null and (t.expires_at is null or t.expires_at > wf.wf_now())
                 then 1 else 0 end as bit) as is_live
  from wf.worker_token as t;
GO
