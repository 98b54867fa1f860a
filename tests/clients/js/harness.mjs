// Runs checks one after the other and prints what became of each as a line of JSON.
import assert from "node:assert/strict";

export { assert };
export const url = process.env.API_URL;
/** A way to the API that a check may cut. */
export const cutUrl = process.env.CUT_URL;

// Lines of JSON are all that stdout may hold.
console.log = console.info = console.debug = console.error;

const SECONDS = 20;
const checks = [];
const told = {};

/** Adds a check. Its name is that of a test case in Python. */
export function check(name, body) {
  assert(!checks.some((one) => one.name === name), `two checks are named ${name}`);
  checks.push({ name, body });
}

/** Tells something else about the script, once its checks are made. */
export function tell(name, value) {
  told[name] = value;
}

/** Makes the checks, then ends the process: clients may have left timers and connections. */
export async function makeChecks() {
  for (const { name, body } of checks) {
    let error = null;
    try {
      await within(SECONDS, body());
    } catch (caught) {
      error = String(caught?.stack ?? caught);
    }
    await print({ check: name, error });
  }
  await print(told);
  process.exit(0);
}

const print = (line) => new Promise((done) => process.stdout.write(`${JSON.stringify(line)}\n`, done));

function within(seconds, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${seconds} s`)), seconds * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const gate = (verb, name) => fetch(`${process.env.GATES_URL}/${verb}/${encodeURIComponent(name)}`, { method: "POST" });

/** Lets a node go on that waits at a gate, or will. */
export const open = (name) => gate("open", name);
/** Waits until a node waits at a gate. */
export const reached = (name) => gate("reached", name);
/** Resets the connections that go through `cutUrl`. */
export const cut = () => gate("cut", "all");
/** Waits until a node that waited at a gate was cancelled. */
export const left = (name) => gate("left", name);

let number = 0;
/** Returns a text that no other check uses. */
export const unique = (word) => `${word} ${process.pid}-${++number}`;

/** Reads a stream to its end. */
export async function all(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** Asserts that a call is refused with this status. */
export async function refused(status, call) {
  await assert.rejects(call, (error) => {
    assert.equal(error.status, status, `${error}`);
    return true;
  });
}
