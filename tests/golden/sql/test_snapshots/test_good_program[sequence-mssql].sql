-- workflow: scopes
-- content: 601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5
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
  (N'scopes')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5', 1, N'[]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'scopes'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'int', 1, 0, null),
  (2, null, N'root', null, N'int', 1, 0, null),
  (3, null, N'root', null, N'any', 1, 0, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'scopes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'scopes', N'SEQUENCE', 0, null, null, N'{}'),
  (N'outer', N'SEQUENCE', 0, null, null, N'{}'),
  (N'outer.sequence_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'outer.set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'outer.set_2', N'SEQUENCE', 0, null, null, N'{}'),
  (N'if_1', N'IF', 0, null, null, N'{"condition":[["var","found","scopes",[]]]}'),
  (N'if_1.then', N'SEQUENCE', 1, null, null, N'{}'),
  (N'fail_1', N'SEQUENCE', 0, null, null, N'{"fail":{"code":-3,"message":[["lit","n is "],["var","n","scopes",[]],["cat",2]]}}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'scopes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'scopes', N'outer', N'SEQUENCE', 0, null),
  (N'scopes', N'if_1', N'SEQUENCE', 1, null),
  (N'outer', N'outer.sequence_1', N'SEQUENCE', 0, null),
  (N'outer', N'outer.set_2', N'SEQUENCE', 1, null),
  (N'outer.sequence_1', N'outer.set_1', N'SEQUENCE', 0, null),
  (N'if_1', N'if_1.then', N'THEN', 0, null),
  (N'if_1.then', N'fail_1', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'scopes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'outer.set_1', 0, N'var', N'n', N'outer', N'[["var","n","outer",[]],["var","m","outer.sequence_1",[]],["len"],["mul"]]'),
  (N'outer.set_2', 0, N'var', N'found', N'scopes', N'[["defined",["ctx","context",["extra"]]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'scopes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'scopes', 0, N'n', N'var', 1, 0, N'[["lit",1]]'),
  (N'scopes', 1, N'found', N'set', null, 0, null),
  (N'outer', 0, N'n', N'var', 2, 0, N'[["var","n","scopes",[]],["lit",1],["add"]]'),
  (N'outer.sequence_1', 0, N'm', N'var', 3, 0, N'[["var","n","outer",[]],["arr",1]]')
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'scopes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'scopes';
declare @v_content_hash nvarchar(64) = N'601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5';
declare @v_source_map nvarchar(max) = N'{"file":"sequence.wf","nodes":{"scopes":[2,10],"outer":[4,12],"outer.sequence_1":[6,5],"outer.set_1":[6,38],"outer.set_2":[7,5],"if_1":[9,3],"if_1.then":[9,16],"fail_1":[9,18]}}';
declare @v_description nvarchar(max) = null;
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
