-- workflow: waits
-- content: e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e
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
  (N'waits')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e', 1, N'[]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'waits'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'string', 1, 0, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'waits'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'waits', N'SEQUENCE', 0, null, null, N'{}'),
  (N'paid', N'WAIT_EVENT', 0, null, null, N'{"event_type":"payment.received","correlate":[["var","order_id","waits",[]]]}'),
  (N'any_news', N'WAIT_EVENT', 0, null, null, N'{"event_type":"news"}'),
  (N'paid_again', N'WAIT_EVENT', 0, null, null, N'{"event_type":"payment.received"}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'waits'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'waits', N'paid', N'SEQUENCE', 0, null),
  (N'waits', N'any_news', N'SEQUENCE', 1, null),
  (N'waits', N'paid_again', N'SEQUENCE', 2, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'waits'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'paid', 0, N'var', N'amount', N'waits', N'[["event",["payload","amount"]]]'),
  (N'paid', 1, N'var', N'by', N'waits', N'[["event",["source"]]]'),
  (N'paid_again', 0, N'var', N'amount', N'waits', N'[["out",["amount"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'waits'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'waits', 0, N'order_id', N'input', 1, 1, null),
  (N'waits', 0, N'amount', N'set', null, 0, null),
  (N'waits', 1, N'by', N'set', null, 0, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'waits'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.event_subscription (workflow_version_id, subscription_order, event_type, mode, filter_json, inputs_json)
select v.workflow_version_id, r.subscription_order, r.event_type, r.mode, r.filter_json, r.inputs_json
from (values
  (0, N'payment.received', N'signal_wait', N'[]', N'[]'),
  (1, N'news', N'signal_wait', N'[]', N'[]')
) as r(subscription_order, event_type, mode, filter_json, inputs_json)
join wf.workflow_def as d on d.name = N'waits'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'waits';
declare @v_content_hash nvarchar(64) = N'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e';
declare @v_source_map nvarchar(max) = N'{"file":"wait_event.wf","nodes":{"waits":[2,10],"paid":[4,14],"any_news":[9,14],"paid_again":[10,14]}}';
declare @v_description nvarchar(max) = null;
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
