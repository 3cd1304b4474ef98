-- workflow: flat_demo
-- content: 00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de
-- dialect: postgresql
-- spec_format: 1

begin isolation level read committed;
set local standard_conforming_strings = on;
set local client_encoding = 'UTF8';
select wf.wf_require_runtime(p_version => 2);
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('wf.deploy', 0));

insert into wf.workflow_def (name)
select r.name
from (values
  ('flat_demo')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de', 1, '[{"order":0,"name":"parcel","program":[["ctx","task",["pack","output","parcel"]]]},{"order":1,"name":"tracking","program":[["ctx","task",["send","output","tracking"]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'flat_demo'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('parcel.pack', 'default', null, false, null, false, false, false, null, null, 5),
  ('parcel.send', 'default', null, false, null, false, false, false, null, null, 5),
  ('stock.order-more', 'default', null, false, null, false, false, false, null, null, 5),
  ('stock.reserve', 'default', null, false, null, false, false, false, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
order by r.action_name
on conflict(action_name) do nothing;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, cast(r.input_schema_json as jsonb), cast(r.output_schema_json as jsonb), cast(r.result_codes_json as jsonb), cast(r.idempotent as boolean), cast(r.timeout_ms as bigint), cast(r.sensitive_json as jsonb)
from (values
  ('parcel.pack', '26096d405d161c0c4fb6bcc8eaca9ea1942f45c7745ab2c83f555e833ac23d10', null, null, '{"type":"object","properties":{"reservations":{"type":"array","items":{"type":"string"}}},"required":["reservations"]}', '{"type":"object","properties":{"parcel":{"type":"string"},"grams":{"type":"integer"}},"required":["parcel","grams"]}', '{}', true, null, '[]'),
  ('parcel.send', 'abc89b074f08895fbd13f794aaafad7aed539178239f898b107173f69f8da77b', null, null, '{"type":"object","properties":{"parcel":{"type":"string"}},"required":["parcel"]}', '{"type":"object","properties":{"tracking":{"type":"string"}},"required":["tracking"]}', '{}', true, null, '[]'),
  ('stock.order-more', '0204ac3d169e0b08f451f01cc2ad058d4363d9d9c8b49d3aefa484ae0f4ca02a', null, null, '{"type":"object","properties":{"item":{"type":"string"},"count":{"type":"integer"}},"required":["item","count"]}', '{"type":"object","properties":{"order":{"type":"string"}},"required":["order"]}', '{}', true, null, '[]'),
  ('stock.reserve', 'cbe85931cc4417b08384b82029997abf64eff6f95f6e8d9e1b19baff7ddb87c8', null, null, '{"type":"object","properties":{"item":{"type":"string"},"count":{"type":"integer"}},"required":["item","count"]}', '{"type":"object","properties":{"reservation":{"type":"string"}},"required":["reservation"]}', '{"0":"reserved","1":"short"}', true, null, '[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
order by r.action_name
on conflict(action_name, revision) do nothing;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('stock.reserve', 'cbe85931cc4417b08384b82029997abf64eff6f95f6e8d9e1b19baff7ddb87c8', 'default', null, false, null, false, false, false, null, null, 5),
  ('stock.order-more', '0204ac3d169e0b08f451f01cc2ad058d4363d9d9c8b49d3aefa484ae0f4ca02a', 'default', null, false, null, false, false, false, null, null, 5),
  ('parcel.pack', '26096d405d161c0c4fb6bcc8eaca9ea1942f45c7745ab2c83f555e833ac23d10', 'default', null, false, null, false, false, false, null, null, 5),
  ('parcel.send', 'abc89b074f08895fbd13f794aaafad7aed539178239f898b107173f69f8da77b', 'default', null, false, null, false, false, false, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = 'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'string', true, false, null),
  (2, null, 'root', null, 'list', true, false, null),
  (3, 2, 'item', null, 'int', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('flat_demo', 'SEQUENCE', false, null, null, '{}'),
  ('foreach_1', 'FOREACH', false, null, null, '{"item":"count","parallel":1}'),
  ('foreach_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('reserve', 'ACTION', false, 'stock.reserve', 'cbe85931cc4417b08384b82029997abf64eff6f95f6e8d9e1b19baff7ddb87c8', '{}'),
  ('if_1', 'IF', false, null, null, '{"condition":[["ctx","task",["reserve","resultCode"]],["lit",1],["eq"]]}'),
  ('if_1.then', 'SEQUENCE', true, null, null, '{}'),
  ('more', 'ACTION', false, 'stock.order-more', '0204ac3d169e0b08f451f01cc2ad058d4363d9d9c8b49d3aefa484ae0f4ca02a', '{}'),
  ('pack', 'ACTION', false, 'parcel.pack', '26096d405d161c0c4fb6bcc8eaca9ea1942f45c7745ab2c83f555e833ac23d10', '{}'),
  ('send', 'ACTION', false, 'parcel.send', 'abc89b074f08895fbd13f794aaafad7aed539178239f898b107173f69f8da77b', '{"retry":{"limit":3,"backoff_ms":60000,"factor_hundredths":100,"max_ms":3600000,"jitter":false,"on":["any"]}}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('flat_demo', 'foreach_1', 'SEQUENCE', 0, null),
  ('flat_demo', 'pack', 'SEQUENCE', 1, null),
  ('flat_demo', 'send', 'SEQUENCE', 2, null),
  ('foreach_1', 'foreach_1.body', 'BODY', 0, null),
  ('foreach_1.body', 'reserve', 'SEQUENCE', 0, null),
  ('foreach_1.body', 'if_1', 'SEQUENCE', 1, null),
  ('if_1', 'if_1.then', 'THEN', 0, null),
  ('if_1.then', 'more', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('reserve', '{"item":"${var.item}","count":"${var.count}"}'),
  ('more', '{"item":"${var.item}","count":"${var.count}"}'),
  ('pack', '{"reservations":"${var.reservations}"}'),
  ('send', '{"parcel":"${ctx.task.pack.output.parcel}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('foreach_1', 0, 'collect', 'reservations', 'flat_demo', '[["ctx","task",["reserve","output","reservation"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('flat_demo', 0, 'item', 'input', 1, true, null),
  ('flat_demo', 1, 'counts', 'input', 2, false, '[["lit",1],["arr",1]]'),
  ('flat_demo', 0, 'reservations', 'set', null, false, null),
  ('foreach_1.body', 0, 'count', 'loop', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, cast(r.program_json as jsonb)
from (values
  ('foreach_1', 'variable', '[["var","counts","flat_demo",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = 'flat_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'flat_demo', p_content_hash => '00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de', p_source_map => cast('{"file":"flat_demo.wf","nodes":{"flat_demo":[2,10],"foreach_1":[14,3],"foreach_1.body":[14,31],"reserve":[15,12],"if_1":[16,5],"if_1.then":[16,41],"more":[17,14],"pack":[21,10],"send":[22,10]}}' as jsonb), p_description => 'Reserve what was ordered, pack it and send it.');

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'flat_demo', p_content_hash => '00448dd3aca941d96d87e5ccdf9c72a026e0f59b62b9cc46e983e4624bc794de', p_activate => true, p_update_actions => false) as p;

commit;
