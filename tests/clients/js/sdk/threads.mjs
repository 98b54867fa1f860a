import { randomUUID } from "node:crypto";
import { assert, check, refused, unique } from "../harness.mjs";
import { client, newThread, usedThread } from "./client.mjs";

const { threads } = client;

check("threads.create", async () => {
  const threadId = randomUUID();
  const one = await threads.create({ threadId, metadata: { a: 1 }, graphId: "steps" });
  assert.deepEqual([one.thread_id, one.metadata, one.status], [threadId, { a: 1, graph_id: "steps" }, "idle"]);
  await refused(409, () => threads.create({ threadId }));
  assert.deepEqual((await threads.create({ threadId, ifExists: "do_nothing" })).metadata, one.metadata);
});

check("threads.create with supersteps", async () => {
  const supersteps = [
    { updates: [{ values: { trail: ["in"] }, asNode: "a" }] },
    { updates: [{ command: { update: { trail: ["more"] } }, asNode: "a" }] },
  ];
  const { thread_id } = await threads.create({ graphId: "steps", supersteps });
  const state = await threads.getState(thread_id);
  assert.deepEqual([state.values.trail, state.next], [["in", "more"], ["b"]]);
});

check("threads.create with ttl", async () => {
  const { thread_id } = await threads.create({ ttl: 60 });
  const { ttl } = await threads.get(thread_id, { include: ["ttl"] });
  assert.deepEqual([ttl.strategy, ttl.ttl_minutes], ["delete", 60]);
});

check("threads.get", async () => {
  const thread = await usedThread();
  const one = await threads.get(thread);
  assert.deepEqual([one.thread_id, one.values, one.status], [thread, { trail: ["in", "a", "b"] }, "idle"]);
  assert.deepEqual([one.metadata.graph_id, one.interrupts, one.error], ["steps", {}, null]);
  await refused(404, () => threads.get(randomUUID()));
});

check("threads.update", async () => {
  const thread = await newThread({ metadata: { a: 1 } });
  assert.deepEqual((await threads.update(thread, { metadata: { b: 2 } })).metadata, { a: 1, b: 2 });
  assert.equal(await threads.update(thread, { metadata: { c: 3 }, ttl: 5, returnMinimal: true }), undefined);
  assert.deepEqual((await threads.get(thread)).metadata, { a: 1, b: 2, c: 3 });
});

check("threads.delete", async () => {
  const thread = await usedThread();
  await threads.delete(thread);
  await refused(404, () => threads.get(thread));
});

check("threads.search", async () => {
  const team = unique("team");
  const ids = [];
  for (let n = 0; n < 3; n++) ids.push(await newThread({ metadata: { team, n } }));
  const found = async (query) => (await threads.search({ metadata: { team }, ...query })).map((one) => one.thread_id);
  assert.deepEqual(await found({}), ids.toReversed());
  assert.deepEqual(await found({ sortBy: "created_at", sortOrder: "asc", limit: 2, offset: 1 }), ids.slice(1));
  assert.deepEqual(await found({ metadata: { team, n: 1 } }), [ids[1]]);
  assert.deepEqual(await found({ ids: [ids[0]] }), [ids[0]]);
  assert.deepEqual(await found({ status: "busy" }), []);
});

check("threads.search by state", async () => {
  const mark = unique("mark");
  const thread = await usedThread("steps", { trail: ["in"], answer: mark });
  const [one, ...rest] = await threads.search({
    values: { answer: mark },
    select: ["thread_id"],
    extract: { last: "values.trail[-1]" },
  });
  assert.deepEqual(rest, []);
  assert.deepEqual(one, { thread_id: thread, extracted: { last: "b" } });
});

check("threads.count", async () => {
  const team = unique("team");
  await newThread({ metadata: { team } });
  assert.equal(await threads.count({ metadata: { team } }), 1);
  assert.equal(await threads.count({ metadata: { team }, status: "error" }), 0);
});

check("threads.copy", async () => {
  const thread = await usedThread();
  const copy = await threads.copy(thread);
  assert.notEqual(copy.thread_id, thread);
  await client.runs.wait(copy.thread_id, "steps", { input: { trail: ["again"] } });
  assert.deepEqual((await threads.getState(thread)).values.trail, ["in", "a", "b"]);
  assert.deepEqual((await threads.getState(copy.thread_id)).values.trail, ["in", "a", "b", "again", "a", "b"]);
});

check("threads.prune", async () => {
  const [kept, gone] = [await usedThread(), await usedThread()];
  assert.deepEqual(await threads.prune([kept], { strategy: "keep_latest" }), { pruned_count: 1 });
  assert.equal((await threads.getHistory(kept)).length, 1);
  assert.deepEqual((await threads.getState(kept)).values.trail, ["in", "a", "b"]);
  assert.deepEqual(await threads.prune([gone, randomUUID()]), { pruned_count: 1 });
  await refused(404, () => threads.get(gone));
});
