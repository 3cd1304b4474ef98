-- workflow: sample_preparation
-- content: 284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf
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
  (N'sample_preparation')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf', 1, N'[{"order":0,"name":"study","program":[["var","study","sample_preparation",[]]]},{"order":1,"name":"outcome","program":[["var","outcome","sample_preparation",[]]]},{"order":2,"name":"libraries","program":[["var","prepared","sample_preparation",[]]]},{"order":3,"name":"reads","program":[["ctx","task",["report","output","reads"]]]},{"order":4,"name":"report","program":[["ctx","task",["report","output","file"]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'sample_preparation'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'library.clip-adapter', N'bench', null, 0, null, 0, 0, 0, null, null, 5),
  (N'library.discard', N'bench', null, 0, null, 0, 0, 0, null, null, 5),
  (N'library.measure', N'bench', null, 0, null, 0, 0, 0, null, null, 5),
  (N'library.trim-tail', N'bench', null, 0, null, 0, 0, 0, null, null, 5),
  (N'pool.count', N'certify', null, 0, null, 0, 0, 0, null, null, 5),
  (N'pool.digest', N'certify', null, 0, null, 0, 0, 0, null, null, 5),
  (N'sample.amplify', N'bench', null, 0, null, 0, 0, 0, null, null, 5),
  (N'sample.draw-reads', N'sequencer', null, 0, null, 0, 0, 0, null, null, 5),
  (N'sample.pool', N'bench', null, 0, null, 0, 0, 0, null, null, 5),
  (N'study.report', N'certify', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
where not exists(select 1 from wf.workflow_action as x where x.action_name = r.action_name)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, r.input_schema_json, r.output_schema_json, r.result_codes_json, r.idempotent, r.timeout_ms, r.sensitive_json
from (values
  (N'library.clip-adapter', N'de0cba2a230ac44fc5ba80dfe88792e81ae75efb05f367c3cd6dbe36964bc705', N'Cut every read where the adapter begins.', null, N'{"type":"object","properties":{"file":{"type":"string"},"work_dir":{"type":"string"}},"required":["file","work_dir"]}', N'{"type":"object","properties":{"file":{"type":"string"}},"required":["file"]}', N'{}', 1, null, N'[]'),
  (N'library.discard', N'9645a72fde504ff019dc7770e0e66cc48259af67e28b3b8cc811456fafd00616', N'Note that a library is not used, and what was left of it.', null, N'{"type":"object","properties":{"file":{"type":"string"},"work_dir":{"type":"string"}},"required":["file","work_dir"]}', N'{"type":"object","properties":{"note":{"type":"string"}},"required":["note"]}', N'{}', 1, null, N'[]'),
  (N'library.measure', N'aed216a7db4632f3efe127c7cbce972a8755cc2026c737c914654471b06b96c0', N'Judge a library by its adapters, its mean quality and what is left of it.', null, N'{"type":"object","properties":{"file":{"type":"string"},"min_quality":{"type":"integer"},"work_dir":{"type":"string"}},"required":["file","min_quality","work_dir"]}', N'{"type":"object","properties":{"reads":{"type":"integer"},"mean_length":{"type":"integer"},"mean_quality":{"type":"integer"},"adapters":{"type":"integer"}},"required":["reads","mean_length","mean_quality","adapters"]}', N'{"0":"good","1":"adapter","2":"worn","3":"spent"}', 1, null, N'[]'),
  (N'library.trim-tail', N'd5c0b5a810f348e7fcf63c302e047db3d4ccb117015f0cb06004921296cdb107', N'Cut bases off the tail of every read; reads that become too short go.', null, N'{"type":"object","properties":{"file":{"type":"string"},"bases":{"type":"integer"},"work_dir":{"type":"string"}},"required":["file","bases","work_dir"]}', N'{"type":"object","properties":{"file":{"type":"string"}},"required":["file"]}', N'{}', 1, null, N'[]'),
  (N'pool.count', N'7fbfb35ceea1e26b82a04878df2d7d8c304fc21cfa0c9d8e43c6a195c2d101a9', N'Count the reads and bases of a pool.', null, N'{"type":"object","properties":{"file":{"type":"string"},"work_dir":{"type":"string"}},"required":["file","work_dir"]}', N'{"type":"object","properties":{"reads":{"type":"integer"},"bases":{"type":"integer"}},"required":["reads","bases"]}', N'{}', 1, null, N'[]'),
  (N'pool.digest', N'5d2518f0a544d78c67c7450dea00125eb951c38f14ccdab76cda66d3468aaa3b', N'Hash a pool.', null, N'{"type":"object","properties":{"file":{"type":"string"},"work_dir":{"type":"string"}},"required":["file","work_dir"]}', N'{"type":"object","properties":{"sha256":{"type":"string"}},"required":["sha256"]}', N'{}', 1, null, N'[]'),
  (N'sample.amplify', N'8b3c4e4d5a7d1e75608226fc2503dc6e6fd49e76693dc90afedf167b8683e000', N'One cycle of amplification; its yield falls from cycle to cycle.', null, N'{"type":"object","properties":{"copies":{"type":"integer"},"cycle":{"type":"integer"}},"required":["copies","cycle"]}', N'{"type":"object","properties":{"copies":{"type":"integer"}},"required":["copies"]}', N'{}', 1, null, N'[]'),
  (N'sample.draw-reads', N'df1fe8fbbcd264de50746c16505b44ff4f20739ec86b1733fcf420069da72703', N'Draw the reads of one chromosome from a sample, as a FASTQ file.', null, N'{"type":"object","properties":{"sample":{"type":"object","properties":{"id":{"type":"string"},"seed":{"type":"integer"},"wear":{"type":"integer"},"adapter":{"type":"boolean"}},"required":["id","seed","wear","adapter"]},"chromosome":{"type":"string"},"work_dir":{"type":"string"}},"required":["sample","chromosome","work_dir"]}', N'{"type":"object","properties":{"file":{"type":"string"},"reads":{"type":"integer"}},"required":["file","reads"]}', N'{}', 1, null, N'[]'),
  (N'sample.pool', N'4c9bda49e110a63c1f7b15f77ed2f8358199c5d0d9cfaa5f5120dc7d63b1e7fa', N'Pool the libraries of one sample that passed the gate.', null, N'{"type":"object","required":["sample","libraries","work_dir"],"additionalProperties":false,"properties":{"sample":{"type":"string"},"libraries":{"type":"array","items":{"type":"object"}},"work_dir":{"type":"string"}}}', N'{"type":"object","properties":{"file":{"type":"string"},"libraries":{"type":"integer"}},"required":["libraries"]}', N'{"0":"filled","1":"empty"}', 1, null, N'[]'),
  (N'study.report', N'93427f1d5ef146d23511e269ba3ca85ed77497fdf3a8d83d22051ba7ee662658', N'Sum up all samples and write the report.', null, N'{"type":"object","required":["study","prepared","work_dir"],"additionalProperties":false,"properties":{"study":{"type":"string"},"prepared":{"type":"array","items":{"type":"object"}},"work_dir":{"type":"string"}}}', N'{"type":"object","properties":{"reads":{"type":"integer"},"bases":{"type":"integer"},"rejected":{"type":"integer"},"file":{"type":"string"}},"required":["reads","bases","rejected","file"]}', N'{"0":"all_prepared","1":"some_rejected","2":"none_prepared"}', 1, null, N'[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
where not exists(select 1 from wf.workflow_action_revision as x where x.action_name = r.action_name and x.revision = r.revision)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'sample.draw-reads', N'df1fe8fbbcd264de50746c16505b44ff4f20739ec86b1733fcf420069da72703', N'sequencer', null, 0, null, 0, 0, 0, null, null, 5),
  (N'library.measure', N'aed216a7db4632f3efe127c7cbce972a8755cc2026c737c914654471b06b96c0', N'bench', null, 0, null, 0, 0, 0, null, null, 5),
  (N'library.clip-adapter', N'de0cba2a230ac44fc5ba80dfe88792e81ae75efb05f367c3cd6dbe36964bc705', N'bench', null, 0, null, 0, 0, 0, null, null, 5),
  (N'library.trim-tail', N'd5c0b5a810f348e7fcf63c302e047db3d4ccb117015f0cb06004921296cdb107', N'bench', null, 0, null, 0, 0, 0, null, null, 5),
  (N'library.discard', N'9645a72fde504ff019dc7770e0e66cc48259af67e28b3b8cc811456fafd00616', N'bench', null, 0, null, 0, 0, 0, null, null, 5),
  (N'sample.pool', N'4c9bda49e110a63c1f7b15f77ed2f8358199c5d0d9cfaa5f5120dc7d63b1e7fa', N'bench', null, 0, null, 0, 0, 0, null, null, 5),
  (N'sample.amplify', N'8b3c4e4d5a7d1e75608226fc2503dc6e6fd49e76693dc90afedf167b8683e000', N'bench', null, 0, null, 0, 0, 0, null, null, 5),
  (N'pool.digest', N'5d2518f0a544d78c67c7450dea00125eb951c38f14ccdab76cda66d3468aaa3b', N'certify', null, 0, null, 0, 0, 0, null, null, 5),
  (N'pool.count', N'7fbfb35ceea1e26b82a04878df2d7d8c304fc21cfa0c9d8e43c6a195c2d101a9', N'certify', null, 0, null, 0, 0, 0, null, null, 5),
  (N'study.report', N'93427f1d5ef146d23511e269ba3ca85ed77497fdf3a8d83d22051ba7ee662658', N'certify', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = N'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'string', 1, 0, null),
  (2, null, N'root', null, N'list', 1, 0, null),
  (3, 2, N'item', null, N'object', 1, 0, null),
  (4, 3, N'field', N'id', N'string', 1, 0, null),
  (5, 3, N'field', N'seed', N'int', 1, 0, null),
  (6, 3, N'field', N'wear', N'int', 1, 0, null),
  (7, 3, N'field', N'adapter', N'bool', 1, 0, null),
  (8, null, N'root', null, N'list', 1, 0, null),
  (9, 8, N'item', null, N'string', 1, 0, null),
  (10, null, N'root', null, N'int', 1, 0, null),
  (11, null, N'root', null, N'int', 1, 0, null),
  (12, null, N'root', null, N'string', 1, 0, null),
  (13, null, N'root', null, N'string', 1, 0, null),
  (14, null, N'root', null, N'int', 1, 0, null),
  (15, null, N'root', null, N'string', 1, 0, null),
  (16, null, N'root', null, N'bool', 1, 0, null),
  (17, null, N'root', null, N'bool', 1, 0, null),
  (18, null, N'root', null, N'int', 1, 0, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'sample_preparation', N'SEQUENCE', 0, null, null, N'{}'),
  (N'foreach_1', N'FOREACH', 0, null, null, N'{"item":"sample","index":"s","parallel":4}'),
  (N'foreach_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'foreach_2', N'FOREACH', 0, null, null, N'{"item":"chromosome","parallel":1}'),
  (N'foreach_2.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'draw', N'ACTION', 0, N'sample.draw-reads', N'df1fe8fbbcd264de50746c16505b44ff4f20739ec86b1733fcf420069da72703', N'{}'),
  (N'gate', N'WHILE', 0, null, null, N'{"condition":[["var","open","foreach_2.body",[]]],"max":12}'),
  (N'gate.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'measure', N'ACTION', 0, N'library.measure', N'aed216a7db4632f3efe127c7cbce972a8755cc2026c737c914654471b06b96c0', N'{}'),
  (N'verdict', N'SWITCH', 0, null, null, N'{"subject":[["ctx","task",["measure","resultCode"]]]}'),
  (N'verdict.case_0', N'SEQUENCE', 1, null, null, N'{}'),
  (N'verdict.set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'verdict.set_2', N'SEQUENCE', 0, null, null, N'{}'),
  (N'verdict.case_1', N'SEQUENCE', 1, null, null, N'{}'),
  (N'clip', N'ACTION', 0, N'library.clip-adapter', N'de0cba2a230ac44fc5ba80dfe88792e81ae75efb05f367c3cd6dbe36964bc705', N'{}'),
  (N'verdict.case_2', N'SEQUENCE', 1, null, null, N'{}'),
  (N'trim', N'ACTION', 0, N'library.trim-tail', N'd5c0b5a810f348e7fcf63c302e047db3d4ccb117015f0cb06004921296cdb107', N'{}'),
  (N'verdict.case_3', N'SEQUENCE', 1, null, null, N'{}'),
  (N'verdict.set_3', N'SEQUENCE', 0, null, null, N'{}'),
  (N'if_1', N'IF', 0, null, null, N'{"condition":[["var","passed","foreach_2.body",[]],["not"]]}'),
  (N'if_1.then', N'SEQUENCE', 1, null, null, N'{}'),
  (N'discard', N'ACTION', 0, N'library.discard', N'9645a72fde504ff019dc7770e0e66cc48259af67e28b3b8cc811456fafd00616', N'{}'),
  (N'pool', N'ACTION', 0, N'sample.pool', N'4c9bda49e110a63c1f7b15f77ed2f8358199c5d0d9cfaa5f5120dc7d63b1e7fa', N'{}'),
  (N'switch_1', N'SWITCH', 0, null, null, N'{"subject":[["ctx","task",["pool","resultCode"]]]}'),
  (N'switch_1.case_0', N'SEQUENCE', 1, null, null, N'{}'),
  (N'amplification', N'REPEAT', 0, null, null, N'{"count":[["var","cycles","sample_preparation",[]]],"counter":"cycle"}'),
  (N'amplification.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'amplify', N'ACTION', 0, N'sample.amplify', N'8b3c4e4d5a7d1e75608226fc2503dc6e6fd49e76693dc90afedf167b8683e000', N'{}'),
  (N'certify', N'PARALLEL', 0, null, null, N'{}'),
  (N'digest', N'ACTION', 0, N'pool.digest', N'5d2518f0a544d78c67c7450dea00125eb951c38f14ccdab76cda66d3468aaa3b', N'{}'),
  (N'count', N'ACTION', 0, N'pool.count', N'7fbfb35ceea1e26b82a04878df2d7d8c304fc21cfa0c9d8e43c6a195c2d101a9', N'{}'),
  (N'switch_1.case_1', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'report', N'ACTION', 0, N'study.report', N'93427f1d5ef146d23511e269ba3ca85ed77497fdf3a8d83d22051ba7ee662658', N'{}'),
  (N'switch_2', N'SWITCH', 0, null, null, N'{"subject":[["ctx","task",["report","resultCode"]]]}'),
  (N'switch_2.case_0', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_2', N'SEQUENCE', 0, null, null, N'{}'),
  (N'switch_2.case_1', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_3', N'SEQUENCE', 0, null, null, N'{}'),
  (N'switch_2.case_2', N'SEQUENCE', 1, null, null, N'{}'),
  (N'fail_1', N'SEQUENCE', 0, null, null, N'{"fail":{"code":-30,"message":[["lit","no sample of "],["var","study","sample_preparation",[]],["lit"," could be prepared"],["cat",3]]}}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'sample_preparation', N'foreach_1', N'SEQUENCE', 0, null),
  (N'sample_preparation', N'report', N'SEQUENCE', 1, null),
  (N'sample_preparation', N'switch_2', N'SEQUENCE', 2, null),
  (N'foreach_1', N'foreach_1.body', N'BODY', 0, null),
  (N'foreach_1.body', N'foreach_2', N'SEQUENCE', 0, null),
  (N'foreach_1.body', N'pool', N'SEQUENCE', 1, null),
  (N'foreach_1.body', N'switch_1', N'SEQUENCE', 2, null),
  (N'foreach_2', N'foreach_2.body', N'BODY', 0, null),
  (N'foreach_2.body', N'draw', N'SEQUENCE', 0, null),
  (N'foreach_2.body', N'gate', N'SEQUENCE', 1, null),
  (N'foreach_2.body', N'if_1', N'SEQUENCE', 2, null),
  (N'gate', N'gate.body', N'BODY', 0, null),
  (N'gate.body', N'measure', N'SEQUENCE', 0, null),
  (N'gate.body', N'verdict', N'SEQUENCE', 1, null),
  (N'verdict', N'verdict.case_0', N'CASE', 0, N'[0]'),
  (N'verdict', N'verdict.case_1', N'CASE', 1, N'[1]'),
  (N'verdict', N'verdict.case_2', N'CASE', 2, N'[2]'),
  (N'verdict', N'verdict.case_3', N'CASE', 3, N'[3]'),
  (N'verdict.case_0', N'verdict.set_1', N'SEQUENCE', 0, null),
  (N'verdict.case_0', N'verdict.set_2', N'SEQUENCE', 1, null),
  (N'verdict.case_1', N'clip', N'SEQUENCE', 0, null),
  (N'verdict.case_2', N'trim', N'SEQUENCE', 0, null),
  (N'verdict.case_3', N'verdict.set_3', N'SEQUENCE', 0, null),
  (N'if_1', N'if_1.then', N'THEN', 0, null),
  (N'if_1.then', N'discard', N'SEQUENCE', 0, null),
  (N'switch_1', N'switch_1.case_0', N'CASE', 0, N'[0]'),
  (N'switch_1', N'switch_1.case_1', N'CASE', 1, N'[1]'),
  (N'switch_1.case_0', N'amplification', N'SEQUENCE', 0, null),
  (N'switch_1.case_0', N'certify', N'SEQUENCE', 1, null),
  (N'amplification', N'amplification.body', N'BODY', 0, null),
  (N'amplification.body', N'amplify', N'SEQUENCE', 0, null),
  (N'certify', N'digest', N'PARALLEL', 0, null),
  (N'certify', N'count', N'PARALLEL', 1, null),
  (N'switch_1.case_1', N'set_1', N'SEQUENCE', 0, null),
  (N'switch_2', N'switch_2.case_0', N'CASE', 0, N'[0]'),
  (N'switch_2', N'switch_2.case_1', N'CASE', 1, N'[1]'),
  (N'switch_2', N'switch_2.case_2', N'CASE', 2, N'[2]'),
  (N'switch_2.case_0', N'set_2', N'SEQUENCE', 0, null),
  (N'switch_2.case_1', N'set_3', N'SEQUENCE', 0, null),
  (N'switch_2.case_2', N'fail_1', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, r.template_json
from (values
  (N'draw', N'{"sample":"${var.sample}","chromosome":"${var.chromosome}","work_dir":"${var.work_dir}"}'),
  (N'measure', N'{"file":"${var.file}","min_quality":"${var.min_quality}","work_dir":"${var.work_dir}"}'),
  (N'clip', N'{"file":"${var.file}","work_dir":"${var.work_dir}"}'),
  (N'trim', N'{"file":"${var.file}","bases":null,"work_dir":"${var.work_dir}"}'),
  (N'discard', N'{"file":"${var.file}","work_dir":"${var.work_dir}"}'),
  (N'pool', N'{"sample":"${var.sample.id}","libraries":"${var.libraries}","work_dir":"${var.work_dir}"}'),
  (N'amplify', N'{"copies":"${var.copies}","cycle":"${var.cycle}"}'),
  (N'digest', N'{"file":"${ctx.task.pool.output.file}","work_dir":"${var.work_dir}"}'),
  (N'count', N'{"file":"${ctx.task.pool.output.file}","work_dir":"${var.work_dir}"}'),
  (N'report', N'{"study":"${var.study}","prepared":"${var.prepared}","work_dir":"${var.work_dir}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = N'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
select v.workflow_version_id, r.node_key, r.pointer, r.program_json
from (values
  (N'trim', N'/bases', N'[["lit",4],["lit",2],["var","repairs","foreach_2.body",[]],["mul"],["add"]]')
) as r(node_key, pointer, program_json)
join wf.workflow_def as d on d.name = N'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'foreach_1', 0, N'collect', N'prepared', N'sample_preparation', N'[["var","sample","foreach_1.body",["id"]],["var","s","foreach_1.body",[]],["var","state","foreach_1.body",[]],["var","copies","foreach_1.body",[]],["ctx","task",["digest","output","sha256"]],["alt",1],["lit",null],["ctx","task",["count","output","reads"]],["alt",1],["lit",0],["ctx","task",["count","output","bases"]],["alt",1],["lit",0],["var","libraries","foreach_1.body",[]],["obj",["sample","place","state","copies","sha256","reads","bases","libraries"]]]'),
  (N'foreach_2', 0, N'collect', N'libraries', N'foreach_1.body', N'[["var","chromosome","foreach_2.body",[]],["var","file","foreach_2.body",[]],["var","passed","foreach_2.body",[]],["var","repairs","foreach_2.body",[]],["ctx","task",["discard","output","note"]],["alt",1],["lit",null],["obj",["chromosome","file","passed","repairs","note"]]]'),
  (N'draw', 0, N'var', N'file', N'foreach_2.body', N'[["out",["file"]]]'),
  (N'verdict.set_1', 0, N'var', N'passed', N'foreach_2.body', N'[["lit",true]]'),
  (N'verdict.set_2', 0, N'var', N'open', N'foreach_2.body', N'[["lit",false]]'),
  (N'clip', 0, N'var', N'file', N'foreach_2.body', N'[["out",["file"]]]'),
  (N'clip', 1, N'var', N'repairs', N'foreach_2.body', N'[["var","repairs","foreach_2.body",[]],["lit",1],["add"]]'),
  (N'trim', 0, N'var', N'file', N'foreach_2.body', N'[["out",["file"]]]'),
  (N'trim', 1, N'var', N'repairs', N'foreach_2.body', N'[["var","repairs","foreach_2.body",[]],["lit",1],["add"]]'),
  (N'verdict.set_3', 0, N'var', N'open', N'foreach_2.body', N'[["lit",false]]'),
  (N'amplify', 0, N'var', N'copies', N'foreach_1.body', N'[["out",["copies"]]]'),
  (N'set_1', 0, N'var', N'state', N'foreach_1.body', N'[["lit","rejected"]]'),
  (N'set_2', 0, N'var', N'outcome', N'sample_preparation', N'[["lit","complete"]]'),
  (N'set_3', 0, N'var', N'outcome', N'sample_preparation', N'[["lit","partial: "],["ctx","task",["report","output","rejected"]],["lit"," rejected"],["cat",3]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'sample_preparation', 0, N'study', N'input', 1, 1, null),
  (N'sample_preparation', 1, N'samples', N'input', 2, 1, null),
  (N'sample_preparation', 2, N'chromosomes', N'input', 8, 0, N'[["lit","chr1"],["lit","chr2"],["lit","chrX"],["arr",3]]'),
  (N'sample_preparation', 3, N'min_quality', N'input', 10, 0, N'[["lit",24]]'),
  (N'sample_preparation', 4, N'cycles', N'input', 11, 0, N'[["lit",4]]'),
  (N'sample_preparation', 5, N'work_dir', N'input', 12, 0, N'[["lit","sample_preparation"]]'),
  (N'sample_preparation', 0, N'prepared', N'set', null, 0, null),
  (N'sample_preparation', 1, N'outcome', N'set', null, 0, null),
  (N'foreach_1.body', 0, N'sample', N'loop', null, 0, null),
  (N'foreach_1.body', 1, N's', N'loop', null, 0, null),
  (N'foreach_1.body', 2, N'state', N'var', 13, 0, N'[["lit","prepared"]]'),
  (N'foreach_1.body', 3, N'copies', N'var', 14, 0, N'[["lit",100]]'),
  (N'foreach_1.body', 4, N'libraries', N'set', null, 0, null),
  (N'foreach_2.body', 0, N'chromosome', N'loop', null, 0, null),
  (N'foreach_2.body', 1, N'file', N'var', 15, 0, N'[["lit",""]]'),
  (N'foreach_2.body', 2, N'open', N'var', 16, 0, N'[["lit",true]]'),
  (N'foreach_2.body', 3, N'passed', N'var', 17, 0, N'[["lit",false]]'),
  (N'foreach_2.body', 4, N'repairs', N'var', 18, 0, N'[["lit",0]]'),
  (N'amplification.body', 0, N'cycle', N'loop', null, 0, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, r.program_json
from (values
  (N'foreach_1', N'variable', N'[["var","samples","sample_preparation",[]]]'),
  (N'foreach_2', N'variable', N'[["var","chromosomes","sample_preparation",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = N'sample_preparation'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'sample_preparation';
declare @v_content_hash nvarchar(64) = N'284026cc9ad60e2ff7d26da2ad5e0db75bcb48c48d27513b52a55d7723d011bf';
declare @v_source_map nvarchar(max) = N'{"file":"sample_preparation.wf","nodes":{"sample_preparation":[3,10],"foreach_1":[24,3],"foreach_1.body":[24,47],"foreach_2":[29,5],"foreach_2.body":[29,43],"draw":[35,14],"gate":[42,13],"gate.body":[42,35],"measure":[43,16],"verdict":[48,16],"verdict.case_0":[49,21],"verdict.set_1":[50,13],"verdict.set_2":[51,13],"verdict.case_1":[53,24],"clip":[54,20],"verdict.case_2":[59,21],"trim":[60,20],"verdict.case_3":[69,22],"verdict.set_3":[70,13],"if_1":[74,7],"if_1.then":[74,25],"discard":[75,16],"pool":[86,12],"switch_1":[91,5],"switch_1.case_0":[92,19],"amplification":[93,16],"amplification.body":[93,51],"amplify":[94,18],"certify":[98,18],"digest":[99,18],"count":[100,18],"switch_1.case_1":[103,18],"set_1":[104,9],"report":[119,10],"switch_2":[120,3],"switch_2.case_0":[121,23],"set_2":[121,25],"switch_2.case_1":[122,24],"set_3":[122,26],"switch_2.case_2":[123,24],"fail_1":[123,26]}}';
declare @v_description nvarchar(max) = N'Turn raw samples into libraries ready for sequencing.';
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
