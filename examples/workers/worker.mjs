// A worker in Node, without packages.
//
//   WF_GATEWAY=https://host:8443 WF_WORKER_TOKEN=… node worker.mjs NAME handlers.mjs
//
// NAME is the worker's name. The module's default export is an object of async functions by action:
// `{ 'text.count': async (input, { signal, path, attempt }) => output }`. What one throws fails the
// task, with its `resultCode` or -1. A token that the gateway does not know yet is enrolled under
// WF_API_KEY for the capabilities in CAPABILITIES (words).
//
// It keeps the rules of docs/worker-protocol.md: CONCURRENCY tasks at a time, heartbeats beside them,
// calls repeated with growing pauses while the gateway is away, what has piled up handed in as one
// batch, SIGTERM finishes what is in hand. JavaScript's numbers are doubles: an action whose numbers
// need more digits takes them as text.
import { pathToFileURL } from 'node:url';

const [name, moduleName] = process.argv.slice(2);
const { WF_GATEWAY: gateway, WF_WORKER_TOKEN: token, WF_API_KEY: key } = process.env;
const concurrency = Number(process.env.CONCURRENCY ?? 4);
const lease = Number(process.env.LEASE ?? 60);
const waitSeconds = Number(process.env.WAIT ?? 30);
const handlers = (await import(pathToFileURL(moduleName))).default;

const ending = new AbortController();
const inHand = new Map(); // task id → { task, controller }
const finished = []; // results that no call has taken yet
let wake = () => {};

const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

/** One call of the gateway, repeated while that may help; throws what was refused. */
async function call(path, body, { bearer = token, signal, insist = true } = {}) {
  for (let pause = 0.1; ; pause = Math.min(pause * 2, 30)) {
    try {
      const answer = await fetch(`${gateway}${path}`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${bearer}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ worker_id: name, ...body }),
        signal: signal ?? AbortSignal.timeout(60_000),
      });
      if (answer.ok) return await answer.json();
      const problem = await answer.json().catch(() => null);
      if (problem?.detail && ![408, 429].includes(answer.status) && answer.status < 500) {
        throw Object.assign(new Error(problem.detail), { refused: true, code: problem.code });
      }
      pause = Math.max(pause, Number(answer.headers.get('retry-after')) || 0);
    } catch (error) {
      if (error.refused || signal?.aborted || !insist) throw error;
    }
    await sleep(pause * (0.5 + Math.random() / 2));
  }
}

async function work(task) {
  const controller = new AbortController();
  inHand.set(task.task_id, { task, controller });
  const result = { task_id: task.task_id, lease_token: task.lease_token };
  try {
    const { path, attempt } = task;
    const context = { signal: controller.signal, path, attempt };
    const output = await handlers[task.action](task.input, context);
    finished.push({ ...result, result_code: 0, output: output ?? null });
  } catch (error) {
    const output = { traceback: String(error?.stack ?? '').split('\n').slice(1, 6) };
    const code = error?.resultCode < 0 ? error.resultCode : -1;
    finished.push({ ...result, result_code: code, message: String(error), output });
  }
  wake();
  await handIn();
}

let handingIn = null;

/** Hands in what has piled up; one call at a time, so that a busy worker makes few of them. */
function handIn() {
  handingIn ??= (async () => {
    while (finished.length > 0) {
      const results = finished.splice(0, 100);
      const { answers } = await call('/v1/workers/tasks/submit', { results });
      for (const { task_id: id, reason, problem } of answers) {
        console.log(`${inHand.get(id)?.task.path} -> ${problem?.detail ?? reason}`);
        inHand.delete(id);
      }
    }
  })().finally(() => {
    handingIn = null;
    wake();
  });
  return handingIn;
}

function obey(command) {
  if (command === 'DRAIN' || command === 'STOP') ending.abort();
  if (command === 'STOP') for (const { controller } of inHand.values()) controller.abort();
}

async function beat() {
  const leases = [...inHand.values()].map(({ task }) => ({
    task_id: task.task_id,
    lease_token: task.lease_token,
  }));
  for (let first = 0; first < leases.length; first += 100) {
    const body = { extend_seconds: lease, leases: leases.slice(first, first + 100) };
    const { answers } = await call('/v1/workers/tasks/heartbeat', body, { insist: false });
    for (const { task_id: id, command } of answers) {
      if (command === 'CANCEL') inHand.get(id)?.controller.abort();
      else obey(command);
    }
  }
}

for (const number of ['SIGTERM', 'SIGINT']) process.on(number, () => ending.abort());
if (key) {
  const capabilities = process.env.CAPABILITIES.split(' ');
  const body = { worker_token: token, capabilities, max_concurrency: concurrency };
  await call('/v1/workers/enroll', body, { bearer: key });
}
const heart = setInterval(() => beat().catch(() => {}), (lease * 1000) / 3);
const working = new Set();
while (!ending.signal.aborted) {
  const free = concurrency - working.size;
  if (free === 0) {
    await new Promise((done) => {
      wake = done;
      ending.signal.addEventListener('abort', done, { once: true });
    });
    continue;
  }
  try {
    const body = { max_tasks: free, lease_seconds: lease, wait_seconds: waitSeconds };
    const signal = ending.signal;
    const { tasks, command } = await call('/v1/workers/tasks/request', body, { signal });
    for (const task of tasks) {
      const done = work(task).finally(() => working.delete(done));
      working.add(done);
    }
    obey(command);
  } catch (error) {
    if (ending.signal.aborted) break;
    console.error(error.message);
    process.exitCode = 1;
    break;
  }
}
await Promise.all(working);
clearInterval(heart);
