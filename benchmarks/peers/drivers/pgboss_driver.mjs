// pg-boss: jobs, and flows of jobs that depend on each other (no data is passed).
// `one by one`: ten jobs of a process at a time; `batch`: 50 in a fetch, which are done or fail
// together; `flow`: its own fan-out with one job that depends on all.
import { fileURLToPath, pathToFileURL } from "node:url";
import {
  RESULT, answer, drain, getReady, idle, load, packages, pause, place, team, told, until,
} from "./protocol.mjs";

const { PgBoss } = await import(pathToFileURL(packages.resolve("pg-boss")).href);
const pg = packages("pg");
const QUEUE = "bench";
const INSERTED_AT_ONCE = 1000;
const batchSize = told.variant === "one by one" ? 1 : 50;
const localConcurrency = told.workload === "idle" ? 1 : batchSize === 1 ? 10 : 2;
const script = fileURLToPath(import.meta.url);
const boss = new PgBoss({
  ...place(),
  max: localConcurrency + 3,
  useListenNotify: true,
  schedule: false,
  // It resolves flows, and counts the queue that burstWhenReadyExceeds reads.
  supervise: told.role === "main" && told.variant !== "batch" && told.workload !== "idle",
  flowIntervalSeconds: 1,
  monitorIntervalSeconds: 1,
  superviseIntervalSeconds: 1,
  queueCacheIntervalSeconds: 1,
});
boss.on("error", (error) => console.error(error));

async function work() {
  await boss.start();
  const options = {
    batchSize,
    localConcurrency,
    pollingIntervalSeconds: 0.5,
    notifyPollingIntervalSeconds: 0.5,
    ...(batchSize > 1 ? { burstWhenBatchFull: true } : { burstWhenReadyExceeds: 1 }),
  };
  await boss.work(QUEUE, options, async () => RESULT);
  getReady();
}

function flow() {
  const leaves = Array.from({ length: told.fan }, (_, n) => ({ name: QUEUE, ref: `leaf${n}` }));
  const join = { name: QUEUE, ref: "join", dependsOn: leaves.map((leaf) => leaf.ref) };
  return [...leaves, join].map((job) => ({ ...job, data: {} }));
}

async function main() {
  await boss.start();
  await boss.createQueue(QUEUE, { notify: true });
  const pool = new pg.Pool({ ...place(), max: 2 });
  const completed = async () => {
    const text = "select count(*)::int as n from pgboss.job where name = $1 and state = 'completed'";
    return (await pool.query(text, [QUEUE])).rows[0].n;
  };
  const insert = async (count) => {
    for (let begin = 0; begin < count; begin += INSERTED_AT_ONCE) {
      const size = Math.min(INSERTED_AT_ONCE, count - begin);
      await boss.insert(QUEUE, Array.from({ length: size }, (_, n) => ({ data: { n } })));
    }
  };
  if (told.workload === "fan") {
    const jobs = told.variant === "flow" ? flow() : null;
    const wanted = jobs ? jobs.length : told.fan;
    const end = await team(script, told.processes);
    await pause(500);
    const seconds = await load(async () => {
      await (jobs ? boss.flow(jobs) : insert(told.fan));
      await until(async () => (await completed()) >= wanted, 20);
    });
    answer(told.fan, seconds);
    await end();
  } else if (told.workload === "idle") {
    const end = await team(script, 1);
    await pause(500);
    await idle(
      (n) => boss.send(QUEUE, { n }),
      async (id) => {
        const text = "select 1 from pgboss.job where name = $1 and id = $2 and state = 'completed'";
        return (await pool.query(text, [QUEUE, id])).rowCount === 1;
      },
    );
    await end();
  } else {
    await insert(told.jobs);
    await pool.query("vacuum analyze");
    const starting = team(script, told.processes);
    await drain(completed);
    await (await starting)();
  }
  process.exit(0);
}

await (told.role === "main" ? main() : work());
