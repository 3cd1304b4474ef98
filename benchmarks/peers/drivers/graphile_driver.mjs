// Graphile Worker: jobs alone; a job that is done is deleted, its result is not kept.
// `batched` has the settings of its own page on performance: a local queue of 500 jobs, and what is
// done is written down many at a time; a crash leaves up to 500 jobs of a process locked for hours.
import { fileURLToPath } from "node:url";
import {
  RESULT, answer, drain, getReady, idle, load, packages, pause, place, team, told, until,
} from "./protocol.mjs";

const { Logger, run, runMigrations } = packages("graphile-worker");
const pg = packages("pg");
const AT_ONCE = told.workload === "idle" ? 1 : 24;
const ADDED_AT_ONCE = 20_000;
const script = fileURLToPath(import.meta.url);
const logger = new Logger(() => () => {});
const batched = {
  localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};

async function work() {
  const pgPool = new pg.Pool({ ...place(), max: AT_ONCE + 2 });
  const worker = {
    concurrentJobs: AT_ONCE,
    maxPoolSize: AT_ONCE + 2,
    pollInterval: 1000,
    ...(told.variant === "batched" ? batched : {}),
  };
  const taskList = { leaf: async () => RESULT };
  await run({ pgPool, logger, noHandleSignals: true, preset: { worker }, taskList });
  getReady();
}

async function main() {
  const pool = new pg.Pool({ ...place(), max: 2 });
  await runMigrations({ pgPool: pool, logger });
  const left = async () => {
    const found = await pool.query("select count(*)::int as n from graphile_worker._private_jobs");
    return found.rows[0].n;
  };
  const add = async (count) => {
    for (let begin = 0; begin < count; begin += ADDED_AT_ONCE) {
      const size = Math.min(ADDED_AT_ONCE, count - begin);
      const jobs = Array.from({ length: size }, (_, n) => ({ identifier: "leaf", payload: { n } }));
      await pool.query(
        "select count(*) from graphile_worker.add_jobs(array(" +
          "select json_populate_recordset(null::graphile_worker.job_spec, $1::json)))",
        [JSON.stringify(jobs)],
      );
    }
  };
  if (told.workload === "fan") {
    const end = await team(script, told.processes);
    await pause(500);
    const seconds = await load(async () => {
      await add(told.fan);
      await until(async () => (await left()) === 0, 20);
    });
    answer(told.fan, seconds);
    await end();
  } else if (told.workload === "idle") {
    const end = await team(script, 1);
    await pause(500);
    await idle(
      async (n) => {
        const text = "select id from graphile_worker.add_job('leaf', json_build_object('n', $1::int))";
        return (await pool.query(text, [n])).rows[0].id;
      },
      async (id) => {
        const text = "select 1 from graphile_worker._private_jobs where id = $1";
        return (await pool.query(text, [id])).rowCount === 0;
      },
    );
    await end();
  } else {
    await add(told.jobs);
    await pool.query("vacuum analyze");
    const starting = team(script, told.processes);
    await drain(async () => told.jobs - (await left()));
    await (await starting)();
  }
  process.exit(0);
}

await (told.role === "main" ? main() : work());
