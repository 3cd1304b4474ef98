-- workflow: awkward
-- content: aa0e0a8bf511ac336654ec53bb83d4c0cfda25cd9b943d190301f598d53145d2
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
  ('awkward')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('aa0e0a8bf511ac336654ec53bb83d4c0cfda25cd9b943d190301f598d53145d2', 1, '[]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'awkward'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('odd ''name'' $(x)' || chr(10) || '😀', 'c', null, false, null, false, false, false, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
order by r.action_name
on conflict(action_name) do nothing;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, cast(r.input_schema_json as jsonb), cast(r.output_schema_json as jsonb), cast(r.result_codes_json as jsonb), cast(r.idempotent as boolean), cast(r.timeout_ms as bigint), cast(r.sensitive_json as jsonb)
from (values
  ('odd ''name'' $(x)' || chr(10) || '😀', '5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f', 'it''sback\slash and \n and trailing \two' || chr(10) || 'lines' || chr(13) || chr(10) || 'three' || chr(10) || 'GO' || chr(10) || 'go-- no comment; drop table x; /* */$(variable) $$(x) $ (y) $emoji 😀 and 漢字 and éline' || chr(8232) || 'separator' || chr(8233) || 'and' || chr(8238) || 'bidi' || chr(8203) || 'zero' || chr(65279) || 'bomtab' || chr(9) || 'bell' || chr(7) || 'del' || chr(127) || ':name :''name'' %s ? @x {0}'''''''' leading and trailing ', chr(8232), null, null, '{"0":"OK"}', true, null, '[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
order by r.action_name
on conflict(action_name, revision) do nothing;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('odd ''name'' $(x)' || chr(10) || '😀', '5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f', 'c', null, false, null, false, false, false, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = 'awkward'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'aa0e0a8bf511ac336654ec53bb83d4c0cfda25cd9b943d190301f598d53145d2'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('awkward', 'SEQUENCE', false, null, null, '{}'),
  ('a', 'ACTION', false, 'odd ''name'' $(x)' || chr(10) || '😀', '5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f', '{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'awkward'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'aa0e0a8bf511ac336654ec53bb83d4c0cfda25cd9b943d190301f598d53145d2'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('awkward', 'a', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'awkward'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'aa0e0a8bf511ac336654ec53bb83d4c0cfda25cd9b943d190301f598d53145d2'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('a', '{"it''s":"it''s","back\\slash and \\n and trailing \\":"back\\slash and \\n and trailing \\","two\nlines\r\nthree":"two\nlines\r\nthree","\nGO\n":"\nGO\n","go":"go","-- no comment; drop table x; /* */":"-- no comment; drop table x; /* */","$(variable) $$(x) $ (y) $":"$(variable) $$(x) $ (y) $","emoji 😀 and 漢字 and é":"emoji 😀 and 漢字 and é","line\u2028separator\u2029and\u202ebidi\u200bzero\ufeffbom":"line\u2028separator\u2029and\u202ebidi\u200bzero\ufeffbom","tab\tbell\u0007del\u007f":"tab\tbell\u0007del\u007f",":name :''name'' %s ? @x {0}":":name :''name'' %s ? @x {0}","''''''''":"''''''''"," leading and trailing ":" leading and trailing ","":""}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'awkward'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'aa0e0a8bf511ac336654ec53bb83d4c0cfda25cd9b943d190301f598d53145d2'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'awkward', p_content_hash => 'aa0e0a8bf511ac336654ec53bb83d4c0cfda25cd9b943d190301f598d53145d2', p_source_map => cast('{"file":"it''s $(x).wf","nodes":{"awkward":[1,1],"a":[2,1]}}' as jsonb), p_description => 'it''sback\slash and \n and trailing \two' || chr(10) || 'lines' || chr(13) || chr(10) || 'three' || chr(10) || 'GO' || chr(10) || 'go-- no comment; drop table x; /* */$(variable) $$(x) $ (y) $emoji 😀 and 漢字 and éline' || chr(8232) || 'separator' || chr(8233) || 'and' || chr(8238) || 'bidi' || chr(8203) || 'zero' || chr(65279) || 'bomtab' || chr(9) || 'bell' || chr(7) || 'del' || chr(127) || ':name :''name'' %s ? @x {0}'''''''' leading and trailing ');

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'awkward', p_content_hash => 'aa0e0a8bf511ac336654ec53bb83d4c0cfda25cd9b943d190301f598d53145d2', p_activate => true, p_update_actions => false) as p;

commit;
