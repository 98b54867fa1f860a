import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { assert, check, left, open, reached, refused, unique } from "../harness.mjs";
import { client, newThread, usedThread } from "./client.mjs";

const { runs, threads } = client;
const input = { trail: ["in"] };
const say = (text) => ({ messages: [{ role: "human", content: text }] });

/** Starts a run that waits at a gate; returns [thread, run, gate]. */
async function held() {
  const [thread, gate] = [await newThread(), unique("hold")];
  const run = await runs.create(thread, "chat", { input: say(gate) });
  await reached(gate);
  return [thread, run.run_id, gate];
}

check("runs.create", async () => {
  const thread = await newThread();
  let created;
  const run = await runs.create(thread, "steps", {
    input,
    metadata: { a: 1 },
    config: { tags: ["t"], configurable: { tone: "kind" } },
    onRunCreated: (one) => (created = one),
  });
  assert.deepEqual(created, { run_id: run.run_id, thread_id: thread });
  assert.equal(run.metadata.a, 1);
  assert.equal(run.kwargs.config.configurable.tone, "kind");
  assert.deepEqual(await runs.join(thread, run.run_id), { trail: ["in", "a", "b"] });
  await refused(404, () => runs.create(randomUUID(), "steps", { input }));
  const fresh = randomUUID();
  await runs.create(fresh, "steps", { input, ifNotExists: "create" });
  assert.equal((await threads.get(fresh)).thread_id, fresh);
});

check("runs.create with an assistant", async () => {
  const { assistant_id } = await client.assistants.create({ graphId: "steps", config: { tags: ["mine"] } });
  const [thread] = [await newThread()];
  const run = await runs.create(thread, assistant_id, { input });
  assert.equal(run.assistant_id, assistant_id);
  await runs.join(thread, run.run_id);
  assert.equal((await threads.get(thread)).metadata.assistant_id, assistant_id);
});

check("runs.wait", async () => {
  assert.deepEqual(await runs.wait(await newThread(), "steps", { input }), { trail: ["in", "a", "b"] });
});

check("runs.wait stops at an interrupt and is resumed", async () => {
  const thread = await newThread();
  const stopped = await runs.wait(thread, "asking", { input });
  assert.deepEqual(stopped.__interrupt__[0].value, { question: "Proceed?" });
  assert.equal((await threads.get(thread)).status, "interrupted");
  const { interrupts } = await threads.getState(thread);
  assert.deepEqual(interrupts.map((one) => one.id), [stopped.__interrupt__[0].id]);
  const resumed = await runs.wait(thread, "asking", { command: { resume: "yes" } });
  assert.deepEqual(resumed, { trail: ["in", "plan", "ask", "finish"], answer: "yes" });
});

check("runs.wait resumes by interrupt id, with an update and a goto", async () => {
  const thread = await newThread();
  const [{ id }] = (await runs.wait(thread, "asking", { input })).__interrupt__;
  const resumed = await runs.wait(thread, "asking", { command: { resume: { [id]: "yes" }, update: { n: 7 } } });
  assert.deepEqual([resumed.answer, resumed.n], ["yes", 7]);
  const gone = await runs.wait(thread, "asking", { command: { goto: "finish", update: { trail: ["jump"] } } });
  assert.deepEqual(gone.trail.slice(-2), ["jump", "finish"]);
});

check("runs.wait leaves a question by a goto to the end", async () => {
  const thread = await newThread();
  await runs.wait(thread, "asking", { input });
  await runs.wait(thread, "asking", { command: { goto: "__end__", update: null } });
  assert.deepEqual((await threads.getState(thread)).values.trail, ["in", "plan"]);
});

check("runs.wait stops before a node", async () => {
  const thread = await newThread();
  await runs.wait(thread, "steps", { input, interruptBefore: ["b"] });
  assert.deepEqual((await threads.getState(thread)).next, ["b"]);
  assert.deepEqual(await runs.wait(thread, "steps", { input: null }), { trail: ["in", "a", "b"] });
});

check("runs.wait raises a node's error", async () => {
  const thread = await newThread();
  await assert.rejects(() => runs.wait(thread, "failing", { input }), /ValueError: boom in plan/);
  assert.equal((await threads.get(thread)).status, "error");
  const told = await runs.wait(await newThread(), "failing", { input, raiseError: false });
  assert.deepEqual(told.__error__, { error: "ValueError", message: "boom in plan" });
});

check("runs.wait from a checkpoint", async () => {
  const thread = await usedThread();
  const before = (await threads.getHistory(thread)).find((one) => one.next[0] === "b");
  await threads.updateState(thread, { values: { trail: ["later"] }, asNode: "b" });
  assert.deepEqual(await runs.wait(thread, "steps", { input: null, checkpoint: before.checkpoint }), {
    trail: ["in", "a", "b"],
  });
});

check("runs.join", async () => {
  const [thread, run, gate] = await held();
  const joined = runs.join(thread, run);
  await open(gate);
  assert.equal((await joined).messages.at(-1).content, `You said ${gate}`);
});

check("runs.list", async () => {
  const thread = await usedThread();
  await runs.wait(thread, "steps", { input });
  const listed = await runs.list(thread);
  assert.deepEqual(listed.map((one) => one.status), ["success", "success"]);
  assert(listed[0].created_at > listed[1].created_at);
  assert.equal((await runs.list(thread, { limit: 1, offset: 1 }))[0].run_id, listed[1].run_id);
  assert.deepEqual(await runs.list(thread, { status: "error" }), []);
  assert.deepEqual(await runs.list(thread, { limit: 1, select: ["run_id"] }), [{ run_id: listed[0].run_id }]);
});

check("runs.get", async () => {
  const [thread, run, gate] = await held();
  assert.equal((await runs.get(thread, run)).status, "running");
  assert.equal((await threads.get(thread)).status, "busy");
  await open(gate);
  await runs.join(thread, run);
  assert.equal((await runs.get(thread, run)).status, "success");
  await refused(404, () => runs.get(thread, randomUUID()));
});

check("runs.delete", async () => {
  const thread = await usedThread();
  const [{ run_id }] = await runs.list(thread);
  await runs.delete(thread, run_id);
  await refused(404, () => runs.get(thread, run_id));
});

check("runs.cancel", async () => {
  const [thread, run, gate] = await held();
  assert.equal(await runs.cancel(thread, run), undefined);
  await left(gate);
  await runs.join(thread, run);
  assert.equal((await runs.get(thread, run)).status, "interrupted");
  await refused(404, () => runs.cancel(thread, run));
  assert.equal((await runs.wait(thread, "chat", { input: say("after") })).messages.at(-1).content, "You said after");
});

check("runs.cancel and wait", async () => {
  const [thread, run] = await held();
  await runs.cancel(thread, run, true, "interrupt", { reason: "taken" });
  assert.equal((await runs.get(thread, run)).status, "interrupted");
});

check("runs.cancel rolls back", async () => {
  const [thread, run] = await held();
  await runs.cancel(thread, run, true, "rollback");
  await refused(404, () => runs.get(thread, run));
  assert.deepEqual((await threads.getState(thread)).values, {});
});

check("runs.cancelMany by ids", async () => {
  const [threadId, running, gate] = await held();
  const next = await runs.create(threadId, "chat", { input: say("queued") });
  await runs.cancelMany({ threadId, runIds: [running, next.run_id] });
  await left(gate);
  for (const id of [running, next.run_id]) {
    await runs.join(threadId, id);
    assert.equal((await runs.get(threadId, id)).status, "interrupted");
  }
  await refused(404, () => runs.cancelMany({ threadId, runIds: [running] }));
});

check("runs.cancelMany by status", async () => {
  const [threadId, running, gate] = await held();
  const next = await runs.create(threadId, "chat", { input: say("queued") });
  await runs.cancelMany({ status: "pending" });
  assert.equal((await runs.get(threadId, next.run_id)).status, "interrupted");
  assert.equal((await runs.get(threadId, running)).status, "running");
  await runs.cancelMany({ status: "all", action: "rollback" });
  await left(gate);
  await runs.join(threadId, running).catch(() => null);
  await refused(404, () => runs.get(threadId, running));
});

check("runs.create after some seconds", async () => {
  const thread = await newThread();
  const later = await runs.create(thread, "steps", { input: { trail: ["later"] }, afterSeconds: 0.5 });
  assert.equal(later.status, "pending");
  assert.deepEqual(await runs.wait(thread, "steps", { input }), { trail: ["in", "a", "b"] });
  const trail = ["in", "a", "b", "later", "a", "b"];
  assert.deepEqual(await runs.join(thread, later.run_id), { trail });
});

check("runs.create with a webhook", async () => {
  let called;
  const told = new Promise((done) => (called = done));
  const receiver = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    response.end();
    called(JSON.parse(body));
  });
  await new Promise((done) => receiver.listen(0, "127.0.0.1", done));
  const webhook = `http://127.0.0.1:${receiver.address().port}/told?by=us`;
  const thread = await newThread();
  const run = await runs.create(thread, "steps", { input, webhook });
  const { run_id, thread_id, status, values } = await told;
  assert.deepEqual([run_id, thread_id, status, values], [run.run_id, thread, "success", { trail: ["in", "a", "b"] }]);
  receiver.close();
});

check("a busy thread", async () => {
  const [thread, run, gate] = await held();
  await refused(409, () => runs.create(thread, "steps", { input, multitaskStrategy: "reject" }));
  const next = await runs.create(thread, "chat", { input: say("queued"), multitaskStrategy: "enqueue" });
  assert.equal(next.status, "pending");
  await open(gate);
  const { messages } = await runs.join(thread, next.run_id);
  assert.deepEqual(messages.map((one) => one.content), [gate, `You said ${gate}`, "queued", "You said queued"]);
  assert.equal((await runs.get(thread, run)).status, "success");
});

check("a run that cuts in", async () => {
  for (const [multitaskStrategy, kept] of [["interrupt", 1], ["rollback", 0]]) {
    const [thread] = await held();
    const { messages } = await runs.wait(thread, "chat", { input: say("now"), multitaskStrategy });
    assert.deepEqual(messages.slice(kept).map((one) => one.content), ["now", "You said now"]);
  }
});
