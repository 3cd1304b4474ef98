-- workflow: order
-- content: 1e2d32113c46163d9bd5b5e213995f7cbe42ec30f8eac664c6ae886880a9b070
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
  ('order')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('1e2d32113c46163d9bd5b5e213995f7cbe42ec30f8eac664c6ae886880a9b070', 1, '[{"order":0,"name":"reservation","program":[["var","reservation","order",[]]]},{"order":1,"name":"tries","program":[["var","tries","order",[]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'order'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('mail.send', 'default', null, false, null, false, false, false, null, null, 5),
  ('stock.reserve', 'stock', null, false, null, false, false, false, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
order by r.action_name
on conflict(action_name) do nothing;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, cast(r.input_schema_json as jsonb), cast(r.output_schema_json as jsonb), cast(r.result_codes_json as jsonb), cast(r.idempotent as boolean), cast(r.timeout_ms as bigint), cast(r.sensitive_json as jsonb)
from (values
  ('mail.send', '7a703188bbf783f54ff48d4d1094248ce542769a8753cdd96c7fd6a149761102', null, null, '{"type":"object","properties":{"to":{"type":"string"},"subject":{"type":"string"},"details":{}},"required":["to"]}', null, '{}', true, null, '[]'),
  ('stock.reserve', '9386a8b3629db68268ebaf6ba3d1eb7a24f22b47912e7a3cebd6ab8fc243ef15', 'Reserve the items of an order.', '1', '{"type":"object","properties":{"order_id":{"type":"string"},"items":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"},"qty":{"type":"integer"}},"required":["sku","qty"]}}},"required":["order_id","items"]}', '{"type":"object","properties":{"reservation":{"type":"string"}},"required":["reservation"]}', '{"0":"ok","1":"short"}', true, null, '[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
order by r.action_name
on conflict(action_name, revision) do nothing;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('stock.reserve', '9386a8b3629db68268ebaf6ba3d1eb7a24f22b47912e7a3cebd6ab8fc243ef15', 'stock', null, false, null, false, false, false, null, null, 5),
  ('mail.send', '7a703188bbf783f54ff48d4d1094248ce542769a8753cdd96c7fd6a149761102', 'default', null, false, null, false, false, false, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = 'order'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '1e2d32113c46163d9bd5b5e213995f7cbe42ec30f8eac664c6ae886880a9b070'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'string', true, false, null),
  (2, null, 'root', null, 'list', true, false, null),
  (3, 2, 'item', null, 'object', true, false, null),
  (4, 3, 'field', 'sku', 'string', true, false, null),
  (5, 3, 'field', 'qty', 'int', true, false, null),
  (6, null, 'root', null, 'string', true, true, null),
  (7, null, 'root', null, 'int', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'order'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '1e2d32113c46163d9bd5b5e213995f7cbe42ec30f8eac664c6ae886880a9b070'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('order', 'SEQUENCE', false, null, null, '{}'),
  ('reserve', 'ACTION', false, 'stock.reserve', '9386a8b3629db68268ebaf6ba3d1eb7a24f22b47912e7a3cebd6ab8fc243ef15', '{"priority":7,"lease_ms":120000}'),
  ('tell', 'ACTION', false, 'mail.send', '7a703188bbf783f54ff48d4d1094248ce542769a8753cdd96c7fd6a149761102', '{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'order'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '1e2d32113c46163d9bd5b5e213995f7cbe42ec30f8eac664c6ae886880a9b070'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('order', 'reserve', 'SEQUENCE', 0, null),
  ('order', 'tell', 'SEQUENCE', 1, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'order'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '1e2d32113c46163d9bd5b5e213995f7cbe42ec30f8eac664c6ae886880a9b070'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('reserve', '{"order_id":"${var.id}","items":"${var.items}"}'),
  ('tell', '{"to":"ops@example.com","subject":"Order ${var.id}: $${done}, ${var.items[0].sku}","details":{"literal":[1,1.50,-2,true,null],"nested":{"odd key":"${var.last}","sum":null}}}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'order'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '1e2d32113c46163d9bd5b5e213995f7cbe42ec30f8eac664c6ae886880a9b070'
where v.published_at is null;

insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
select v.workflow_version_id, r.node_key, r.pointer, cast(r.program_json as jsonb)
from (values
  ('tell', '/details/nested/sum', '[["lit",2],["var","tries","order",[]],["lit",1],["add"],["mul"]]')
) as r(node_key, pointer, program_json)
join wf.workflow_def as d on d.name = 'order'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '1e2d32113c46163d9bd5b5e213995f7cbe42ec30f8eac664c6ae886880a9b070'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('reserve', 0, 'var', 'reservation', 'order', '[["out",["reservation"]]]'),
  ('reserve', 1, 'var', 'tries', 'order', '[["var","tries","order",[]],["lit",1],["add"]]'),
  ('reserve', 2, 'var', 'last', 'order', '[["var","reservation","order",[]],["lit","/"],["code"],["cat",3]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'order'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '1e2d32113c46163d9bd5b5e213995f7cbe42ec30f8eac664c6ae886880a9b070'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('order', 0, 'id', 'input', 1, true, null),
  ('order', 1, 'items', 'input', 2, true, null),
  ('order', 2, 'note', 'input', 6, false, '[["lit",null]]'),
  ('order', 0, 'tries', 'var', 7, false, '[["lit",0]]'),
  ('order', 1, 'reservation', 'set', null, false, null),
  ('order', 2, 'last', 'set', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'order'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '1e2d32113c46163d9bd5b5e213995f7cbe42ec30f8eac664c6ae886880a9b070'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'order', p_content_hash => '1e2d32113c46163d9bd5b5e213995f7cbe42ec30f8eac664c6ae886880a9b070', p_source_map => cast('{"file":"action.wf","nodes":{"order":[2,10],"reserve":[7,10],"tell":[15,10]}}' as jsonb), p_description => 'One action.');

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'order', p_content_hash => '1e2d32113c46163d9bd5b5e213995f7cbe42ec30f8eac664c6ae886880a9b070', p_activate => true, p_update_actions => false) as p;

commit;
