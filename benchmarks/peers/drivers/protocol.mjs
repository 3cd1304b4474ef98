// The same protocol as protocol.py has, for drivers in Node: one argument of JSON, lines of JSON out.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

export const told = { role: "main", index: 0, ...JSON.parse(process.argv[2]) };
export const RESULT = { ok: true };
// The packages stand in a folder of the benchmark's, not beside this file.
export const packages = createRequire(`${told.packages}/package.json`);

const GIVE_UP_MS = 200_000;
const input = createInterface({ input: process.stdin });
const lines = input[Symbol.asyncIterator]();
if (told.role !== "main") input.on("close", () => process.exit(0));

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
export const getReady = () => process.stdout.write("ready\n");

/** Where the server is, in the words of `pg`, which reads no socket folder from a URL. */
export function place() {
  const url = new URL(told.url.replace("@/", "@localhost/"));
  const host = url.searchParams.get("host");
  return { user: decodeURIComponent(url.username), database: url.pathname.slice(1), host };
}

async function mark(name) {
  say({ mark: name });
  if ((await lines.next()).done) process.exit(1);
}

/** Runs the measured part; answers its seconds. */
export async function load(part) {
  await mark("begin");
  const began = performance.now();
  await part();
  const seconds = (performance.now() - began) / 1000;
  await mark("end");
  return seconds;
}

export const answer = (units, seconds, latencies_ms = []) =>
  say({ result: { units, seconds, latencies_ms } });

/** Starts `count` workers of the same script; answers how to end them. */
export async function team(script, count) {
  const members = [];
  for (let index = 0; index < count; index += 1) {
    const argument = JSON.stringify({ ...told, role: "worker", index });
    const member = spawn(process.execPath, [script, argument], { stdio: ["pipe", "pipe", "inherit"] });
    members.push(member);
    const said = createInterface({ input: member.stdout })[Symbol.asyncIterator]();
    const first = await said.next();
    if (first.value !== "ready") throw new Error("a worker did not get ready");
  }
  return async () => {
    for (const member of members) {
      const gone = once(member, "exit");
      member.stdin.end();
      await Promise.race([gone, pause(8000)]);
      if (member.exitCode === null) member.kill("SIGKILL");
    }
  };
}

export async function until(done, pauseMs) {
  const giveUpAt = Date.now() + GIVE_UP_MS;
  while (!(await done())) {
    if (Date.now() > giveUpAt) throw new Error("the load does not end");
    await pause(pauseMs);
  }
}

/** One at a time: `start` gives what a look at the database, `done`, is asked about. */
export async function idle(start, done) {
  const found = [];
  const seconds = await load(async () => {
    for (let number = 0; number < told.samples; number += 1) {
      await pause(30 + Math.random() * 50);
      const began = performance.now();
      const job = await start(number);
      while (!(await done(job))) await pause(0);
      found.push(performance.now() - began);
    }
  });
  answer(told.samples, seconds, found);
}

/** How many are done within a window, or until nearly all are; the workers run already. */
export async function drain(count) {
  await until(async () => (await count()) >= told.jobs / 100, 20);
  let first, last, began, now;
  await load(async () => {
    first = last = await count();
    began = now = performance.now();
    while (now - began < told.drain_seconds * 1000 && last < told.jobs * 0.9) {
      await pause(100);
      last = await count();
      now = performance.now();
    }
  });
  answer(last - first, (now - began) / 1000);
}
