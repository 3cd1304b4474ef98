-- workflow: flat_demo
-- content: 00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de
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
  (N'flat_demo')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de', 1, N'[{"order":0,"name":"parcel","program":[["ctx","task",["pack","output","parcel"]]]},{"order":1,"name":"tracking","program":[["ctx","task",["send","output","tracking"]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'flat_demo'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'parcel.pack', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'parcel.send', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'stock.order-more', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'stock.reserve', N'default', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
where not exists(select 1 from wf.workflow_action as x where x.action_name = r.action_name)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, r.input_schema_json, r.output_schema_json, r.result_codes_json, r.idempotent, r.timeout_ms, r.sensitive_json
from (values
  (N'parcel.pack', N'26096d405d161c0c4fb6bcc8eaca9ea1942f45c7745ab2c83f555e833ac23d10', null, null, N'{"type":"object","properties":{"reservations":{"type":"array","items":{"type":"string"}}},"required":["reservations"]}', N'{"type":"object","properties":{"parcel":{"type":"string"},"grams":{"type":"integer"}},"required":["parcel","grams"]}', N'{}', 1, null, N'[]'),
  (N'parcel.send', N'abc89b074f08895fbd13f794aaafad7aed539178239f898b107173f69f8da77b', null, null, N'{"type":"object","properties":{"parcel":{"type":"string"}},"required":["parcel"]}', N'{"type":"object","properties":{"tracking":{"type":"string"}},"required":["tracking"]}', N'{}', 1, null, N'[]'),
  (N'stock.order-more', N'0204ac3d169e0b08f451f01cc2ad058d4363d9d9c8b49d3aefa484ae0f4ca02a', null, null, N'{"type":"object","properties":{"item":{"type":"string"},"count":{"type":"integer"}},"required":["item","count"]}', N'{"type":"object","properties":{"order":{"type":"string"}},"required":["order"]}', N'{}', 1, null, N'[]'),
  (N'stock.reserve', N'cbe85931cc4417b08384b82029997abf64eff6f95f6e8d9e1b19baff7ddb87c8', null, null, N'{"type":"object","properties":{"item":{"type":"string"},"count":{"type":"integer"}},"required":["item","count"]}', N'{"type":"object","properties":{"reservation":{"type":"string"}},"required":["reservation"]}', N'{"0":"reserved","1":"short"}', 1, null, N'[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
where not exists(select 1 from wf.workflow_action_revision as x where x.action_name = r.action_name and x.revision = r.revision)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'stock.reserve', N'cbe85931cc4417b08384b82029997abf64eff6f95f6e8d9e1b19baff7ddb87c8', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'stock.order-more', N'0204ac3d169e0b08f451f01cc2ad058d4363d9d9c8b49d3aefa484ae0f4ca02a', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'parcel.pack', N'26096d405d161c0c4fb6bcc8eaca9ea1942f45c7745ab2c83f555e833ac23d10', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'parcel.send', N'abc89b074f08895fbd13f794aaafad7aed539178239f898b107173f69f8da77b', N'default', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = N'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'string', 1, 0, null),
  (2, null, N'root', null, N'list', 1, 0, null),
  (3, 2, N'item', null, N'int', 1, 0, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'flat_demo', N'SEQUENCE', 0, null, null, N'{}'),
  (N'foreach_1', N'FOREACH', 0, null, null, N'{"item":"count","parallel":1}'),
  (N'foreach_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'reserve', N'ACTION', 0, N'stock.reserve', N'cbe85931cc4417b08384b82029997abf64eff6f95f6e8d9e1b19baff7ddb87c8', N'{}'),
  (N'if_1', N'IF', 0, null, null, N'{"condition":[["ctx","task",["reserve","resultCode"]],["lit",1],["eq"]]}'),
  (N'if_1.then', N'SEQUENCE', 1, null, null, N'{}'),
  (N'more', N'ACTION', 0, N'stock.order-more', N'0204ac3d169e0b08f451f01cc2ad058d4363d9d9c8b49d3aefa484ae0f4ca02a', N'{}'),
  (N'pack', N'ACTION', 0, N'parcel.pack', N'26096d405d161c0c4fb6bcc8eaca9ea1942f45c7745ab2c83f555e833ac23d10', N'{}'),
  (N'send', N'ACTION', 0, N'parcel.send', N'abc89b074f08895fbd13f794aaafad7aed539178239f898b107173f69f8da77b', N'{"retry":{"limit":3,"backoff_ms":60000,"factor_hundredths":100,"max_ms":3600000,"jitter":false,"on":["any"]}}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'flat_demo', N'foreach_1', N'SEQUENCE', 0, null),
  (N'flat_demo', N'pack', N'SEQUENCE', 1, null),
  (N'flat_demo', N'send', N'SEQUENCE', 2, null),
  (N'foreach_1', N'foreach_1.body', N'BODY', 0, null),
  (N'foreach_1.body', N'reserve', N'SEQUENCE', 0, null),
  (N'foreach_1.body', N'if_1', N'SEQUENCE', 1, null),
  (N'if_1', N'if_1.then', N'THEN', 0, null),
  (N'if_1.then', N'more', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, r.template_json
from (values
  (N'reserve', N'{"item":"${var.item}","count":"${var.count}"}'),
  (N'more', N'{"item":"${var.item}","count":"${var.count}"}'),
  (N'pack', N'{"reservations":"${var.reservations}"}'),
  (N'send', N'{"parcel":"${ctx.task.pack.output.parcel}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = N'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'foreach_1', 0, N'collect', N'reservations', N'flat_demo', N'[["ctx","task",["reserve","output","reservation"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'flat_demo', 0, N'item', N'input', 1, 1, null),
  (N'flat_demo', 1, N'counts', N'input', 2, 0, N'[["lit",1],["arr",1]]'),
  (N'flat_demo', 0, N'reservations', N'set', null, 0, null),
  (N'foreach_1.body', 0, N'count', N'loop', null, 0, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, r.program_json
from (values
  (N'foreach_1', N'variable', N'[["var","counts","flat_demo",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = N'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'flat_demo';
declare @v_content_hash nvarchar(64) = N'00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de';
declare @v_source_map nvarchar(max) = N'{"file":"flat_demo.wf","nodes":{"flat_demo":[2,10],"foreach_1":[14,3],"foreach_1.body":[14,31],"reserve":[15,12],"if_1":[16,5],"if_1.then":[16,41],"more":[17,14],"pack":[21,10],"send":[22,10]}}';
declare @v_description nvarchar(max) = N'Reserve what was ordered, pack it and send it.';
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
