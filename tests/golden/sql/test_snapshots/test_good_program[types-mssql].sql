-- workflow: first
-- content: fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb
-- dialect: mssql
-- spec_format: 1

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

if @@trancount > 0 throw 70003, N'run the deploy script outside a transaction', 1;
set transaction isolation level read committed;
begin transaction;
exec wf.wf_require_runtime @version = 2;
declare @v_lock int;
exec @v_lock = sys.sp_getapplock @Resource = N'wf.deploy', @LockMode = N'Exclusive',
    @LockOwner = N'Transaction', @LockTimeout = 60000;
if @v_lock < 0 throw 70009, N'another deploy is running', 1;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_def (name)
select r.name
from (values
  (N'first')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb', 1, N'[{"order":0,"name":"n","program":[["var","parts","first",[]],["len"]]},{"order":1,"name":"rate","program":[["var","rate","first",[]],["var","best","first",[]],["var","extra","first",[]],["arr",3]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'first'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'list', 1, 0, null),
  (2, 1, N'item', null, N'object', 1, 0, null),
  (3, 2, N'field', N'sku', N'string', 1, 0, null),
  (4, 2, N'field', N'size', N'string', 1, 1, N'["s","m","l"]'),
  (5, 2, N'field', N'tags', N'list', 0, 0, null),
  (6, 5, N'item', null, N'string', 1, 0, null),
  (7, null, N'root', null, N'object', 1, 1, null),
  (8, 7, N'field', N'sku', N'string', 1, 0, null),
  (9, 7, N'field', N'size', N'string', 1, 1, N'["s","m","l"]'),
  (10, 7, N'field', N'tags', N'list', 0, 0, null),
  (11, 10, N'item', null, N'string', 1, 0, null),
  (12, null, N'root', null, N'object', 1, 0, null),
  (13, null, N'root', null, N'number', 1, 0, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'first'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'first', N'SEQUENCE', 0, null, null, N'{}'),
  (N'set_1', N'SEQUENCE', 0, null, null, N'{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'first'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'first', N'set_1', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'first'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'set_1', 0, N'var', N'unused_name', N'first', N'[["var","parts","first",[]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'first'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'first', 0, N'parts', N'input', 1, 1, null),
  (N'first', 1, N'best', N'input', 7, 1, null),
  (N'first', 2, N'extra', N'input', 12, 0, N'[["obj",[]]]'),
  (N'first', 3, N'rate', N'input', 13, 0, N'[["lit",0.10]]'),
  (N'first', 0, N'unused_name', N'set', null, 0, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'first'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'first';
declare @v_content_hash nvarchar(64) = N'fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb';
declare @v_source_map nvarchar(max) = N'{"file":"types.wf","nodes":{"first":[4,10],"set_1":[8,3]}}';
declare @v_description nvarchar(max) = null;
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
-- workflow: second
-- content: 7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74
-- dialect: mssql
-- spec_format: 1

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

if @@trancount > 0 throw 70003, N'run the deploy script outside a transaction', 1;
set transaction isolation level read committed;
begin transaction;
exec wf.wf_require_runtime @version = 2;
declare @v_lock int;
exec @v_lock = sys.sp_getapplock @Resource = N'wf.deploy', @LockMode = N'Exclusive',
    @LockOwner = N'Transaction', @LockTimeout = 60000;
if @v_lock < 0 throw 70009, N'another deploy is running', 1;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_def (name)
select r.name
from (values
  (N'second')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74', 1, N'[{"order":0,"name":"size","program":[["var","part","second",["size"]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'second'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'object', 1, 0, null),
  (2, 1, N'field', N'sku', N'string', 1, 0, null),
  (3, 1, N'field', N'size', N'string', 1, 1, N'["s","m","l"]'),
  (4, 1, N'field', N'tags', N'list', 0, 0, null),
  (5, 4, N'item', null, N'string', 1, 0, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'second'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'second', N'SEQUENCE', 0, null, null, N'{}'),
  (N'set_1', N'SEQUENCE', 0, null, null, N'{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'second'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'second', N'set_1', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'second'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'set_1', 0, N'var', N'seen', N'second', N'[["var","part","second",["sku"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'second'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'second', 0, N'part', N'input', 1, 1, null),
  (N'second', 0, N'seen', N'set', null, 0, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'second'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'second';
declare @v_content_hash nvarchar(64) = N'7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74';
declare @v_source_map nvarchar(max) = N'{"file":"types.wf","nodes":{"second":[10,10],"set_1":[13,3]}}';
declare @v_description nvarchar(max) = null;
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
