-- workflow: delivery
-- content: 55c1836bc620894ae4f6a3daa1672ce41626757edbfe6ba7ca3768a517f22a55
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
  (N'delivery')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'55c1836bc620894ae4f6a3daa1672ce41626757edbfe6ba7ca3768a517f22a55', 1, N'[]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'delivery'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'delivery', N'SEQUENCE', 0, null, null, N'{}'),
  (N'delivered', N'WAIT_EVENT', 0, null, null, N'{"event_type":"courier.delivered","correlate":[["var","order_id","delivery",[]]]}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'55c1836bc620894ae4f6a3daa1672ce41626757edbfe6ba7ca3768a517f22a55'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'delivery', N'delivered', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'55c1836bc620894ae4f6a3daa1672ce41626757edbfe6ba7ca3768a517f22a55'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.event_subscription (workflow_version_id, subscription_order, event_type, mode, filter_json, inputs_json)
select v.workflow_version_id, r.subscription_order, r.event_type, r.mode, r.filter_json, r.inputs_json
from (values
  (0, N'courier.delivered', N'signal_wait', N'[]', N'[]')
) as r(subscription_order, event_type, mode, filter_json, inputs_json)
join wf.workflow_def as d on d.name = N'delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'55c1836bc620894ae4f6a3daa1672ce41626757edbfe6ba7ca3768a517f22a55'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'delivery';
declare @v_content_hash nvarchar(64) = N'55c1836bc620894ae4f6a3daa1672ce41626757edbfe6ba7ca3768a517f22a55';
declare @v_source_map nvarchar(max) = N'{"file":"delivery.wf","nodes":{"delivery":[1,3],"delivered":[2,3]}}';
declare @v_description nvarchar(max) = null;
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
