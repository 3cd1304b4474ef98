-- workflow: sample_preparation
-- content: 284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf
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
  ('sample_preparation')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf', 1, '[{"order":0,"name":"study","program":[["var","study","sample_preparation",[]]]},{"order":1,"name":"outcome","program":[["var","outcome","sample_preparation",[]]]},{"order":2,"name":"libraries","program":[["var","prepared","sample_preparation",[]]]},{"order":3,"name":"reads","program":[["ctx","task",["report","output","reads"]]]},{"order":4,"name":"report","program":[["ctx","task",["report","output","file"]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'sample_preparation'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('library.clip-adapter', 'bench', null, false, null, false, false, false, null, null, 5),
  ('library.discard', 'bench', null, false, null, false, false, false, null, null, 5),
  ('library.measure', 'bench', null, false, null, false, false, false, null, null, 5),
  ('library.trim-tail', 'bench', null, false, null, false, false, false, null, null, 5),
  ('pool.count', 'certify', null, false, null, false, false, false, null, null, 5),
  ('pool.digest', 'certify', null, false, null, false, false, false, null, null, 5),
  ('sample.amplify', 'bench', null, false, null, false, false, false, null, null, 5),
  ('sample.draw-reads', 'sequencer', null, false, null, false, false, false, null, null, 5),
  ('sample.pool', 'bench', null, false, null, false, false, false, null, null, 5),
  ('study.report', 'certify', null, false, null, false, false, false, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
order by r.action_name
on conflict(action_name) do nothing;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, cast(r.input_schema_json as jsonb), cast(r.output_schema_json as jsonb), cast(r.result_codes_json as jsonb), cast(r.idempotent as boolean), cast(r.timeout_ms as bigint), cast(r.sensitive_json as jsonb)
from (values
  ('library.clip-adapter', 'de0cba2a230ac44fc5ba80dfe88792e81ae75efb05f367c3cd6dbe36964bc705', 'Cut every read where the adapter begins.', null, '{"type":"object","properties":{"file":{"type":"string"},"work_dir":{"type":"string"}},"required":["file","work_dir"]}', '{"type":"object","properties":{"file":{"type":"string"}},"required":["file"]}', '{}', true, null, '[]'),
  ('library.discard', '9645a72fde504ff019dc7770e0e66cc48259af67e28b3b8cc811456fafd00616', 'Note that a library is not used, and what was left of it.', null, '{"type":"object","properties":{"file":{"type":"string"},"work_dir":{"type":"string"}},"required":["file","work_dir"]}', '{"type":"object","properties":{"note":{"type":"string"}},"required":["note"]}', '{}', true, null, '[]'),
  ('library.measure', 'aed216a7db4632f3efe127c7cbce972a8755cc2026c737c914654471b06b96c0', 'Judge a library by its adapters, its mean quality and what is left of it.', null, '{"type":"object","properties":{"file":{"type":"string"},"min_quality":{"type":"integer"},"work_dir":{"type":"string"}},"required":["file","min_quality","work_dir"]}', '{"type":"object","properties":{"reads":{"type":"integer"},"mean_length":{"type":"integer"},"mean_quality":{"type":"integer"},"adapters":{"type":"integer"}},"required":["reads","mean_length","mean_quality","adapters"]}', '{"0":"good","1":"adapter","2":"worn","3":"spent"}', true, null, '[]'),
  ('library.trim-tail', 'd5c0b5a810f348e7fcf63c302e047db3d4ccb117015f0cb06004921296cdb107', 'Cut bases off the tail of every read; reads that become too short go.', null, '{"type":"object","properties":{"file":{"type":"string"},"bases":{"type":"integer"},"work_dir":{"type":"string"}},"required":["file","bases","work_dir"]}', '{"type":"object","properties":{"file":{"type":"string"}},"required":["file"]}', '{}', true, null, '[]'),
  ('pool.count', '7fbfb35ceea1e26b82a04878df2d7d8c304fc21cfa0c9d8e43c6a195c2d101a9', 'Count the reads and bases of a pool.', null, '{"type":"object","properties":{"file":{"type":"string"},"work_dir":{"type":"string"}},"required":["file","work_dir"]}', '{"type":"object","properties":{"reads":{"type":"integer"},"bases":{"type":"integer"}},"required":["reads","bases"]}', '{}', true, null, '[]'),
  ('pool.digest', '5d2518f0a544d78c67c7450dea00125eb951c38f14ccdab76cda66d3468aaa3b', 'Hash a pool.', null, '{"type":"object","properties":{"file":{"type":"string"},"work_dir":{"type":"string"}},"required":["file","work_dir"]}', '{"type":"object","properties":{"sha256":{"type":"string"}},"required":["sha256"]}', '{}', true, null, '[]'),
  ('sample.amplify', '8b3c4e4d5a7d1e75608226fc2503dc6e6fd49e76693dc90afedf167b8683e000', 'One cycle of amplification; its yield falls from cycle to cycle.', null, '{"type":"object","properties":{"copies":{"type":"integer"},"cycle":{"type":"integer"}},"required":["copies","cycle"]}', '{"type":"object","properties":{"copies":{"type":"integer"}},"required":["copies"]}', '{}', true, null, '[]'),
  ('sample.draw-reads', 'df1fe8fbbcd264de50746c16505b44ff4f20739ec86b1733fcf420069da72703', 'Draw the reads of one chromosome from a sample, as a FASTQ file.', null, '{"type":"object","properties":{"sample":{"type":"object","properties":{"id":{"type":"string"},"seed":{"type":"integer"},"wear":{"type":"integer"},"adapter":{"type":"boolean"}},"required":["id","seed","wear","adapter"]},"chromosome":{"type":"string"},"work_dir":{"type":"string"}},"required":["sample","chromosome","work_dir"]}', '{"type":"object","properties":{"file":{"type":"string"},"reads":{"type":"integer"}},"required":["file","reads"]}', '{}', true, null, '[]'),
  ('sample.pool', '4c9bda49e110a63c1f7b15f77ed2f8358199c5d0d9cfaa5f5120dc7d63b1e7fa', 'Pool the libraries of one sample that passed the gate.', null, '{"type":"object","required":["sample","libraries","work_dir"],"additionalProperties":false,"properties":{"sample":{"type":"string"},"libraries":{"type":"array","items":{"type":"object"}},"work_dir":{"type":"string"}}}', '{"type":"object","properties":{"file":{"type":"string"},"libraries":{"type":"integer"}},"required":["libraries"]}', '{"0":"filled","1":"empty"}', true, null, '[]'),
  ('study.report', '93427f1d5ef146d23511e269ba3ca85ed77497fdf3a8d83d22051ba7ee662658', 'Sum up all samples and write the report.', null, '{"type":"object","required":["study","prepared","work_dir"],"additionalProperties":false,"properties":{"study":{"type":"string"},"prepared":{"type":"array","items":{"type":"object"}},"work_dir":{"type":"string"}}}', '{"type":"object","properties":{"reads":{"type":"integer"},"bases":{"type":"integer"},"rejected":{"type":"integer"},"file":{"type":"string"}},"required":["reads","bases","rejected","file"]}', '{"0":"all_prepared","1":"some_rejected","2":"none_prepared"}', true, null, '[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
order by r.action_name
on conflict(action_name, revision) do nothing;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('sample.draw-reads', 'df1fe8fbbcd264de50746c16505b44ff4f20739ec86b1733fcf420069da72703', 'sequencer', null, false, null, false, false, false, null, null, 5),
  ('library.measure', 'aed216a7db4632f3efe127c7cbce972a8755cc2026c737c914654471b06b96c0', 'bench', null, false, null, false, false, false, null, null, 5),
  ('library.clip-adapter', 'de0cba2a230ac44fc5ba80dfe88792e81ae75efb05f367c3cd6dbe36964bc705', 'bench', null, false, null, false, false, false, null, null, 5),
  ('library.trim-tail', 'd5c0b5a810f348e7fcf63c302e047db3d4ccb117015f0cb06004921296cdb107', 'bench', null, false, null, false, false, false, null, null, 5),
  ('library.discard', '9645a72fde504ff019dc7770e0e66cc48259af67e28b3b8cc811456fafd00616', 'bench', null, false, null, false, false, false, null, null, 5),
  ('sample.pool', '4c9bda49e110a63c1f7b15f77ed2f8358199c5d0d9cfaa5f5120dc7d63b1e7fa', 'bench', null, false, null, false, false, false, null, null, 5),
  ('sample.amplify', '8b3c4e4d5a7d1e75608226fc2503dc6e6fd49e76693dc90afedf167b8683e000', 'bench', null, false, null, false, false, false, null, null, 5),
  ('pool.digest', '5d2518f0a544d78c67c7450dea00125eb951c38f14ccdab76cda66d3468aaa3b', 'certify', null, false, null, false, false, false, null, null, 5),
  ('pool.count', '7fbfb35ceea1e26b82a04878df2d7d8c304fc21cfa0c9d8e43c6a195c2d101a9', 'certify', null, false, null, false, false, false, null, null, 5),
  ('study.report', '93427f1d5ef146d23511e269ba3ca85ed77497fdf3a8d83d22051ba7ee662658', 'certify', null, false, null, false, false, false, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = 'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'string', true, false, null),
  (2, null, 'root', null, 'list', true, false, null),
  (3, 2, 'item', null, 'object', true, false, null),
  (4, 3, 'field', 'id', 'string', true, false, null),
  (5, 3, 'field', 'seed', 'int', true, false, null),
  (6, 3, 'field', 'wear', 'int', true, false, null),
  (7, 3, 'field', 'adapter', 'bool', true, false, null),
  (8, null, 'root', null, 'list', true, false, null),
  (9, 8, 'item', null, 'string', true, false, null),
  (10, null, 'root', null, 'int', true, false, null),
  (11, null, 'root', null, 'int', true, false, null),
  (12, null, 'root', null, 'string', true, false, null),
  (13, null, 'root', null, 'string', true, false, null),
  (14, null, 'root', null, 'int', true, false, null),
  (15, null, 'root', null, 'string', true, false, null),
  (16, null, 'root', null, 'bool', true, false, null),
  (17, null, 'root', null, 'bool', true, false, null),
  (18, null, 'root', null, 'int', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('sample_preparation', 'SEQUENCE', false, null, null, '{}'),
  ('foreach_1', 'FOREACH', false, null, null, '{"item":"sample","index":"s","parallel":4}'),
  ('foreach_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('foreach_2', 'FOREACH', false, null, null, '{"item":"chromosome","parallel":1}'),
  ('foreach_2.body', 'SEQUENCE', true, null, null, '{}'),
  ('draw', 'ACTION', false, 'sample.draw-reads', 'df1fe8fbbcd264de50746c16505b44ff4f20739ec86b1733fcf420069da72703', '{}'),
  ('gate', 'WHILE', false, null, null, '{"condition":[["var","open","foreach_2.body",[]]],"max":12}'),
  ('gate.body', 'SEQUENCE', true, null, null, '{}'),
  ('measure', 'ACTION', false, 'library.measure', 'aed216a7db4632f3efe127c7cbce972a8755cc2026c737c914654471b06b96c0', '{}'),
  ('verdict', 'SWITCH', false, null, null, '{"subject":[["ctx","task",["measure","resultCode"]]]}'),
  ('verdict.case_0', 'SEQUENCE', true, null, null, '{}'),
  ('verdict.set_1', 'SEQUENCE', false, null, null, '{}'),
  ('verdict.set_2', 'SEQUENCE', false, null, null, '{}'),
  ('verdict.case_1', 'SEQUENCE', true, null, null, '{}'),
  ('clip', 'ACTION', false, 'library.clip-adapter', 'de0cba2a230ac44fc5ba80dfe88792e81ae75efb05f367c3cd6dbe36964bc705', '{}'),
  ('verdict.case_2', 'SEQUENCE', true, null, null, '{}'),
  ('trim', 'ACTION', false, 'library.trim-tail', 'd5c0b5a810f348e7fcf63c302e047db3d4ccb117015f0cb06004921296cdb107', '{}'),
  ('verdict.case_3', 'SEQUENCE', true, null, null, '{}'),
  ('verdict.set_3', 'SEQUENCE', false, null, null, '{}'),
  ('if_1', 'IF', false, null, null, '{"condition":[["var","passed","foreach_2.body",[]],["not"]]}'),
  ('if_1.then', 'SEQUENCE', true, null, null, '{}'),
  ('discard', 'ACTION', false, 'library.discard', '9645a72fde504ff019dc7770e0e66cc48259af67e28b3b8cc811456fafd00616', '{}'),
  ('pool', 'ACTION', false, 'sample.pool', '4c9bda49e110a63c1f7b15f77ed2f8358199c5d0d9cfaa5f5120dc7d63b1e7fa', '{}'),
  ('switch_1', 'SWITCH', false, null, null, '{"subject":[["ctx","task",["pool","resultCode"]]]}'),
  ('switch_1.case_0', 'SEQUENCE', true, null, null, '{}'),
  ('amplification', 'REPEAT', false, null, null, '{"count":[["var","cycles","sample_preparation",[]]],"counter":"cycle"}'),
  ('amplification.body', 'SEQUENCE', true, null, null, '{}'),
  ('amplify', 'ACTION', false, 'sample.amplify', '8b3c4e4d5a7d1e75608226fc2503dc6e6fd49e76693dc90afedf167b8683e000', '{}'),
  ('certify', 'PARALLEL', false, null, null, '{}'),
  ('digest', 'ACTION', false, 'pool.digest', '5d2518f0a544d78c67c7450dea00125eb951c38f14ccdab76cda66d3468aaa3b', '{}'),
  ('count', 'ACTION', false, 'pool.count', '7fbfb35ceea1e26b82a04878df2d7d8c304fc21cfa0c9d8e43c6a195c2d101a9', '{}'),
  ('switch_1.case_1', 'SEQUENCE', true, null, null, '{}'),
  ('set_1', 'SEQUENCE', false, null, null, '{}'),
  ('report', 'ACTION', false, 'study.report', '93427f1d5ef146d23511e269ba3ca85ed77497fdf3a8d83d22051ba7ee662658', '{}'),
  ('switch_2', 'SWITCH', false, null, null, '{"subject":[["ctx","task",["report","resultCode"]]]}'),
  ('switch_2.case_0', 'SEQUENCE', true, null, null, '{}'),
  ('set_2', 'SEQUENCE', false, null, null, '{}'),
  ('switch_2.case_1', 'SEQUENCE', true, null, null, '{}'),
  ('set_3', 'SEQUENCE', false, null, null, '{}'),
  ('switch_2.case_2', 'SEQUENCE', true, null, null, '{}'),
  ('fail_1', 'SEQUENCE', false, null, null, '{"fail":{"code":-30,"message":[["lit","no sample of "],["var","study","sample_preparation",[]],["lit"," could be prepared"],["cat",3]]}}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('sample_preparation', 'foreach_1', 'SEQUENCE', 0, null),
  ('sample_preparation', 'report', 'SEQUENCE', 1, null),
  ('sample_preparation', 'switch_2', 'SEQUENCE', 2, null),
  ('foreach_1', 'foreach_1.body', 'BODY', 0, null),
  ('foreach_1.body', 'foreach_2', 'SEQUENCE', 0, null),
  ('foreach_1.body', 'pool', 'SEQUENCE', 1, null),
  ('foreach_1.body', 'switch_1', 'SEQUENCE', 2, null),
  ('foreach_2', 'foreach_2.body', 'BODY', 0, null),
  ('foreach_2.body', 'draw', 'SEQUENCE', 0, null),
  ('foreach_2.body', 'gate', 'SEQUENCE', 1, null),
  ('foreach_2.body', 'if_1', 'SEQUENCE', 2, null),
  ('gate', 'gate.body', 'BODY', 0, null),
  ('gate.body', 'measure', 'SEQUENCE', 0, null),
  ('gate.body', 'verdict', 'SEQUENCE', 1, null),
  ('verdict', 'verdict.case_0', 'CASE', 0, '[0]'),
  ('verdict', 'verdict.case_1', 'CASE', 1, '[1]'),
  ('verdict', 'verdict.case_2', 'CASE', 2, '[2]'),
  ('verdict', 'verdict.case_3', 'CASE', 3, '[3]'),
  ('verdict.case_0', 'verdict.set_1', 'SEQUENCE', 0, null),
  ('verdict.case_0', 'verdict.set_2', 'SEQUENCE', 1, null),
  ('verdict.case_1', 'clip', 'SEQUENCE', 0, null),
  ('verdict.case_2', 'trim', 'SEQUENCE', 0, null),
  ('verdict.case_3', 'verdict.set_3', 'SEQUENCE', 0, null),
  ('if_1', 'if_1.then', 'THEN', 0, null),
  ('if_1.then', 'discard', 'SEQUENCE', 0, null),
  ('switch_1', 'switch_1.case_0', 'CASE', 0, '[0]'),
  ('switch_1', 'switch_1.case_1', 'CASE', 1, '[1]'),
  ('switch_1.case_0', 'amplification', 'SEQUENCE', 0, null),
  ('switch_1.case_0', 'certify', 'SEQUENCE', 1, null),
  ('amplification', 'amplification.body', 'BODY', 0, null),
  ('amplification.body', 'amplify', 'SEQUENCE', 0, null),
  ('certify', 'digest', 'PARALLEL', 0, null),
  ('certify', 'count', 'PARALLEL', 1, null),
  ('switch_1.case_1', 'set_1', 'SEQUENCE', 0, null),
  ('switch_2', 'switch_2.case_0', 'CASE', 0, '[0]'),
  ('switch_2', 'switch_2.case_1', 'CASE', 1, '[1]'),
  ('switch_2', 'switch_2.case_2', 'CASE', 2, '[2]'),
  ('switch_2.case_0', 'set_2', 'SEQUENCE', 0, null),
  ('switch_2.case_1', 'set_3', 'SEQUENCE', 0, null),
  ('switch_2.case_2', 'fail_1', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('draw', '{"sample":"${var.sample}","chromosome":"${var.chromosome}","work_dir":"${var.work_dir}"}'),
  ('measure', '{"file":"${var.file}","min_quality":"${var.min_quality}","work_dir":"${var.work_dir}"}'),
  ('clip', '{"file":"${var.file}","work_dir":"${var.work_dir}"}'),
  ('trim', '{"file":"${var.file}","bases":null,"work_dir":"${var.work_dir}"}'),
  ('discard', '{"file":"${var.file}","work_dir":"${var.work_dir}"}'),
  ('pool', '{"sample":"${var.sample.id}","libraries":"${var.libraries}","work_dir":"${var.work_dir}"}'),
  ('amplify', '{"copies":"${var.copies}","cycle":"${var.cycle}"}'),
  ('digest', '{"file":"${ctx.task.pool.output.file}","work_dir":"${var.work_dir}"}'),
  ('count', '{"file":"${ctx.task.pool.output.file}","work_dir":"${var.work_dir}"}'),
  ('report', '{"study":"${var.study}","prepared":"${var.prepared}","work_dir":"${var.work_dir}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;

insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
select v.workflow_version_id, r.node_key, r.pointer, cast(r.program_json as jsonb)
from (values
  ('trim', '/bases', '[["lit",4],["lit",2],["var","repairs","foreach_2.body",[]],["mul"],["add"]]')
) as r(node_key, pointer, program_json)
join wf.workflow_def as d on d.name = 'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('foreach_1', 0, 'collect', 'prepared', 'sample_preparation', '[["var","sample","foreach_1.body",["id"]],["var","s","foreach_1.body",[]],["var","state","foreach_1.body",[]],["var","copies","foreach_1.body",[]],["ctx","task",["digest","output","sha256"]],["alt",1],["lit",null],["ctx","task",["count","output","reads"]],["alt",1],["lit",0],["ctx","task",["count","output","bases"]],["alt",1],["lit",0],["var","libraries","foreach_1.body",[]],["obj",["sample","place","state","copies","sha256","reads","bases","libraries"]]]'),
  ('foreach_2', 0, 'collect', 'libraries', 'foreach_1.body', '[["var","chromosome","foreach_2.body",[]],["var","file","foreach_2.body",[]],["var","passed","foreach_2.body",[]],["var","repairs","foreach_2.body",[]],["ctx","task",["discard","output","note"]],["alt",1],["lit",null],["obj",["chromosome","file","passed","repairs","note"]]]'),
  ('draw', 0, 'var', 'file', 'foreach_2.body', '[["out",["file"]]]'),
  ('verdict.set_1', 0, 'var', 'passed', 'foreach_2.body', '[["lit",true]]'),
  ('verdict.set_2', 0, 'var', 'open', 'foreach_2.body', '[["lit",false]]'),
  ('clip', 0, 'var', 'file', 'foreach_2.body', '[["out",["file"]]]'),
  ('clip', 1, 'var', 'repairs', 'foreach_2.body', '[["var","repairs","foreach_2.body",[]],["lit",1],["add"]]'),
  ('trim', 0, 'var', 'file', 'foreach_2.body', '[["out",["file"]]]'),
  ('trim', 1, 'var', 'repairs', 'foreach_2.body', '[["var","repairs","foreach_2.body",[]],["lit",1],["add"]]'),
  ('verdict.set_3', 0, 'var', 'open', 'foreach_2.body', '[["lit",false]]'),
  ('amplify', 0, 'var', 'copies', 'foreach_1.body', '[["out",["copies"]]]'),
  ('set_1', 0, 'var', 'state', 'foreach_1.body', '[["lit","rejected"]]'),
  ('set_2', 0, 'var', 'outcome', 'sample_preparation', '[["lit","complete"]]'),
  ('set_3', 0, 'var', 'outcome', 'sample_preparation', '[["lit","partial: "],["ctx","task",["report","output","rejected"]],["lit"," rejected"],["cat",3]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('sample_preparation', 0, 'study', 'input', 1, true, null),
  ('sample_preparation', 1, 'samples', 'input', 2, true, null),
  ('sample_preparation', 2, 'chromosomes', 'input', 8, false, '[["lit","chr1"],["lit","chr2"],["lit","chrX"],["arr",3]]'),
  ('sample_preparation', 3, 'min_quality', 'input', 10, false, '[["lit",24]]'),
  ('sample_preparation', 4, 'cycles', 'input', 11, false, '[["lit",4]]'),
  ('sample_preparation', 5, 'work_dir', 'input', 12, false, '[["lit","sample_preparation"]]'),
  ('sample_preparation', 0, 'prepared', 'set', null, false, null),
  ('sample_preparation', 1, 'outcome', 'set', null, false, null),
  ('foreach_1.body', 0, 'sample', 'loop', null, false, null),
  ('foreach_1.body', 1, 's', 'loop', null, false, null),
  ('foreach_1.body', 2, 'state', 'var', 13, false, '[["lit","prepared"]]'),
  ('foreach_1.body', 3, 'copies', 'var', 14, false, '[["lit",100]]'),
  ('foreach_1.body', 4, 'libraries', 'set', null, false, null),
  ('foreach_2.body', 0, 'chromosome', 'loop', null, false, null),
  ('foreach_2.body', 1, 'file', 'var', 15, false, '[["lit",""]]'),
  ('foreach_2.body', 2, 'open', 'var', 16, false, '[["lit",true]]'),
  ('foreach_2.body', 3, 'passed', 'var', 17, false, '[["lit",false]]'),
  ('foreach_2.body', 4, 'repairs', 'var', 18, false, '[["lit",0]]'),
  ('amplification.body', 0, 'cycle', 'loop', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, cast(r.program_json as jsonb)
from (values
  ('foreach_1', 'variable', '[["var","samples","sample_preparation",[]]]'),
  ('foreach_2', 'variable', '[["var","chromosomes","sample_preparation",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = 'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'sample_preparation', p_content_hash => '284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf', p_source_map => cast('{"file":"sample_preparation.wf","nodes":{"sample_preparation":[3,10],"foreach_1":[24,3],"foreach_1.body":[24,47],"foreach_2":[29,5],"foreach_2.body":[29,43],"draw":[35,14],"gate":[42,13],"gate.body":[42,35],"measure":[43,16],"verdict":[48,16],"verdict.case_0":[49,21],"verdict.set_1":[50,13],"verdict.set_2":[51,13],"verdict.case_1":[53,24],"clip":[54,20],"verdict.case_2":[59,21],"trim":[60,20],"verdict.case_3":[69,22],"verdict.set_3":[70,13],"if_1":[74,7],"if_1.then":[74,25],"discard":[75,16],"pool":[86,12],"switch_1":[91,5],"switch_1.case_0":[92,19],"amplification":[93,16],"amplification.body":[93,51],"amplify":[94,18],"certify":[98,18],"digest":[99,18],"count":[100,18],"switch_1.case_1":[103,18],"set_1":[104,9],"report":[119,10],"switch_2":[120,3],"switch_2.case_0":[121,23],"set_2":[121,25],"switch_2.case_1":[122,24],"set_3":[122,26],"switch_2.case_2":[123,24],"fail_1":[123,26]}}' as jsonb), p_description => 'Turn raw samples into libraries ready for sequencing.');

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'sample_preparation', p_content_hash => '284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf', p_activate => true, p_update_actions => false) as p;

commit;
