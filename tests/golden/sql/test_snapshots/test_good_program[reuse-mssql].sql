-- workflow: reuse
-- content: da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7
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
  (N'reuse')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7', 1, N'[{"order":0,"name":"checked","program":[["var","checked","reuse",[]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'reuse'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'mail.send', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'part.check', N'lab', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
where not exists(select 1 from wf.workflow_action as x where x.action_name = r.action_name)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, r.input_schema_json, r.output_schema_json, r.result_codes_json, r.idempotent, r.timeout_ms, r.sensitive_json
from (values
  (N'mail.send', N'7a703188bbf783f54ff48d4d1094248ce542769a8753cdd96c7fd6a149761102', null, null, N'{"type":"object","properties":{"to":{"type":"string"},"subject":{"type":"string"},"details":{}},"required":["to"]}', null, N'{}', 1, null, N'[]'),
  (N'part.check', N'8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', null, null, null, N'{"type":"object","properties":{"good":{"type":"boolean"},"score":{"type":"number"}},"required":["good"]}', N'{"0":"fine","1":"poor","2":"bad"}', 0, null, N'[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
where not exists(select 1 from wf.workflow_action_revision as x where x.action_name = r.action_name and x.revision = r.revision)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'part.check', N'8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', N'lab', null, 0, null, 0, 0, 0, null, null, 5),
  (N'mail.send', N'7a703188bbf783f54ff48d4d1094248ce542769a8753cdd96c7fd6a149761102', N'default', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = N'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'list', 1, 0, null),
  (2, 1, N'item', null, N'object', 1, 0, null),
  (3, 2, N'field', N'id', N'string', 1, 0, null),
  (4, 2, N'field', N'rounds', N'list', 1, 0, null),
  (5, 4, N'item', null, N'int', 1, 0, null),
  (6, null, N'root', null, N'string', 1, 0, null),
  (7, null, N'root', null, N'string', 1, 1, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'reuse', N'SEQUENCE', 0, null, null, N'{}'),
  (N'foreach_1', N'FOREACH', 0, null, null, N'{"item":"order","index":"o","parallel":8,"reuse":{"fingerprint":"1c7dd1bd7c9d83cd84501453319b53661145d32a463da8b9c04a9b99fe293c30","reads":[["ctx","context",["note"]],["var","o","foreach_1.body",[]],["var","orders","reuse",[]],["var","region","reuse",[]]]}}'),
  (N'foreach_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'foreach_2', N'FOREACH', 0, null, null, N'{"item":"round","index":"r","parallel":1,"reuse":{"fingerprint":"56b663dc0b8dab17a996974aa705aabb452affa2d53f5d4c5c6c1a3f1fa92d07","reads":[["var","o","foreach_1.body",[]],["var","orders","reuse",[]],["var","r","foreach_2.body",[]],["var","region","reuse",[]]]}}'),
  (N'foreach_2.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'check', N'ACTION', 0, N'part.check', N'8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', N'{}'),
  (N'foreach_3', N'FOREACH', 0, null, null, N'{"item":"ids","parallel":1,"batch":2,"reuse":{"fingerprint":"c515ecaf101e2ed17a679148143cf8af4cb9bfa9a08a9ae1d5efd708cfb0f3cf","reads":[]}}'),
  (N'foreach_3.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'tell', N'ACTION', 0, N'mail.send', N'7a703188bbf783f54ff48d4d1094248ce542769a8753cdd96c7fd6a149761102', N'{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'reuse', N'foreach_1', N'SEQUENCE', 0, null),
  (N'reuse', N'foreach_3', N'SEQUENCE', 1, null),
  (N'foreach_1', N'foreach_1.body', N'BODY', 0, null),
  (N'foreach_1.body', N'foreach_2', N'SEQUENCE', 0, null),
  (N'foreach_2', N'foreach_2.body', N'BODY', 0, null),
  (N'foreach_2.body', N'check', N'SEQUENCE', 0, null),
  (N'foreach_3', N'foreach_3.body', N'BODY', 0, null),
  (N'foreach_3.body', N'tell', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, r.template_json
from (values
  (N'check', N'{"round":null,"order":"${var.order.id}","label":"${var.region}-${var.o}-${var.r}","first":null}'),
  (N'tell', N'{"to":"ops@example.com","details":"${var.ids}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = N'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
select v.workflow_version_id, r.node_key, r.pointer, r.program_json
from (values
  (N'check', N'/round', N'[["var","round","foreach_2.body",[]],["lit",1],["add"]]'),
  (N'check', N'/first', N'[["var","orders","reuse",[["var","o","foreach_1.body",[]],"rounds",0]]]')
) as r(node_key, pointer, program_json)
join wf.workflow_def as d on d.name = N'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'foreach_1', 0, N'collect', N'checked', N'reuse', N'[["var","good","foreach_1.body",[]],["ctx","context",["note"]],["alt",1],["var","note","foreach_1.body",[]],["arr",2]]'),
  (N'foreach_2', 0, N'collect', N'good', N'foreach_1.body', N'[["ctx","task",["check","output","good"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'reuse', 0, N'orders', N'input', 1, 1, null),
  (N'reuse', 1, N'region', N'input', 6, 1, null),
  (N'reuse', 0, N'checked', N'set', null, 0, null),
  (N'foreach_1.body', 0, N'order', N'loop', null, 0, null),
  (N'foreach_1.body', 1, N'o', N'loop', null, 0, null),
  (N'foreach_1.body', 2, N'note', N'var', 7, 0, N'[["lit",null]]'),
  (N'foreach_1.body', 3, N'good', N'set', null, 0, null),
  (N'foreach_2.body', 0, N'round', N'loop', null, 0, null),
  (N'foreach_2.body', 1, N'r', N'loop', null, 0, null),
  (N'foreach_3.body', 0, N'ids', N'loop', null, 0, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, r.program_json
from (values
  (N'foreach_1', N'variable', N'[["var","orders","reuse",[]]]'),
  (N'foreach_2', N'variable', N'[["var","order","foreach_1.body",["rounds"]]]'),
  (N'foreach_3', N'program', N'[["lit","a"],["lit","b"],["lit","c"],["arr",3]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = N'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'reuse';
declare @v_content_hash nvarchar(64) = N'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7';
declare @v_source_map nvarchar(max) = N'{"file":"reuse.wf","nodes":{"reuse":[2,10],"foreach_1":[6,3],"foreach_1.body":[6,51],"foreach_2":[8,5],"foreach_2.body":[8,48],"check":[9,14],"foreach_3":[19,3],"foreach_3.body":[19,48],"tell":[20,12]}}';
declare @v_description nvarchar(max) = null;
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
