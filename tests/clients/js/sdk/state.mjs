import { assert, check, refused } from "../harness.mjs";
import { client, newThread, usedThread } from "./client.mjs";

const { runs, threads } = client;

check("threads.getState", async () => {
  const thread = await usedThread();
  const state = await threads.getState(thread);
  assert.deepEqual([state.values, state.next, state.tasks], [{ trail: ["in", "a", "b"] }, [], []]);
  assert.equal(state.checkpoint.thread_id, thread);
  assert.equal(state.checkpoint_id, state.checkpoint.checkpoint_id);
  assert.equal(state.metadata.step, 2);
  assert.deepEqual((await threads.getState(await newThread())).values, {});
});

check("threads.getState at a checkpoint", async () => {
  const thread = await usedThread();
  const before = (await threads.getHistory(thread)).find((one) => one.next[0] === "b");
  for (const at of [before.checkpoint.checkpoint_id, before.checkpoint]) {
    const state = await threads.getState(thread, at);
    assert.deepEqual([state.values.trail, state.next], [["in", "a"], ["b"]]);
    assert.deepEqual(state.checkpoint, before.checkpoint);
  }
});

check("threads.getState with subgraphs", async () => {
  const thread = await usedThread("nested");
  const [plain] = (await threads.getState(thread)).tasks;
  assert.equal(plain.state, null);
  assert.match(plain.checkpoint.checkpoint_ns, /^child:/);
  const [full] = (await threads.getState(thread, undefined, { subgraphs: true })).tasks;
  assert.deepEqual([full.state.values.trail, full.state.next], [["in"], ["sub_ask"]]);
  const inside = await threads.getState(thread, { checkpoint_ns: plain.checkpoint.checkpoint_ns });
  assert.deepEqual(inside.next, ["sub_ask"]);
});

check("threads.updateState", async () => {
  const thread = await usedThread();
  await threads.updateState(thread, { values: { trail: ["edited"] }, asNode: "a" });
  const state = await threads.getState(thread);
  assert.deepEqual([state.values.trail, state.next], [["in", "a", "b", "edited"], ["b"]]);
  assert.deepEqual(await runs.wait(thread, "steps", { input: null }), { trail: ["in", "a", "b", "edited", "b"] });
  await refused(400, () => threads.updateState(thread, { values: {}, asNode: "nope" }));
});

check("threads.updateState forks", async () => {
  const thread = await usedThread();
  const before = (await threads.getHistory(thread)).find((one) => one.next[0] === "b");
  const fork = await threads.updateState(thread, {
    values: { trail: ["fork"] },
    asNode: "a",
    checkpointId: before.checkpoint.checkpoint_id,
  });
  const forked = await threads.getState(thread);
  assert.equal(forked.checkpoint.checkpoint_id, fork.checkpoint.checkpoint_id);
  assert.deepEqual(forked.parent_checkpoint, before.checkpoint);
  assert.deepEqual(forked.values.trail, ["in", "a", "fork"]);
  await runs.wait(thread, "steps", { input: null, checkpointId: fork.checkpoint.checkpoint_id });
  assert.deepEqual((await threads.getState(thread)).values.trail, ["in", "a", "fork", "b"]);
});

check("threads.getHistory", async () => {
  const thread = await usedThread();
  const history = await threads.getHistory(thread);
  assert.deepEqual(history.map((one) => one.next), [[], ["b"], ["a"], ["__start__"]]);
  for (const [n, one] of history.slice(0, -1).entries()) assert.deepEqual(one.parent_checkpoint, history[n + 1].checkpoint);
  const [newest, second] = history;
  assert.deepEqual((await threads.getHistory(thread, { limit: 1 }))[0], newest);
  for (const before of [{ configurable: newest.checkpoint }, newest.checkpoint]) {
    assert.deepEqual((await threads.getHistory(thread, { before, limit: 1 }))[0], second);
  }
  const inputs = await threads.getHistory(thread, { metadata: { source: "input" } });
  assert.deepEqual(inputs.map((one) => one.next), [["__start__"]]);
});

check("threads.getHistory of a subgraph", async () => {
  const thread = await usedThread("nested");
  const [task] = (await threads.getState(thread)).tasks;
  const history = await threads.getHistory(thread, { checkpoint: { checkpoint_ns: task.checkpoint.checkpoint_ns } });
  assert.deepEqual(history[0].next, ["sub_ask"]);
});
