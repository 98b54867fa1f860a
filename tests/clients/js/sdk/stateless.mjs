import { all, assert, check, unique } from "../harness.mjs";
import { client } from "./client.mjs";

const { runs, threads } = client;
const input = { trail: ["in"] };

check("stateless runs.wait", async () => {
  assert.deepEqual(await runs.wait(null, "steps", { input }), { trail: ["in", "a", "b"] });
});

check("stateless runs.stream", async () => {
  let created;
  const events = await all(runs.stream(null, "steps", {
    input,
    streamMode: "updates",
    onRunCreated: (run) => (created = run),
  }));
  assert.deepEqual(events.map((one) => one.event), ["metadata", "updates", "updates"]);
  assert.equal(created.run_id, events[0].data.run_id);
});

check("stateless runs.create and joinStream", async () => {
  const run = await runs.create(null, "steps", { input, onCompletion: "keep" });
  const events = await all(runs.joinStream(null, run.run_id, { lastEventId: "-1" }));
  assert.deepEqual(events.at(-1).data, { trail: ["in", "a", "b"] });
  assert.deepEqual((await threads.getState(run.thread_id)).values, { trail: ["in", "a", "b"] });
});

check("runs.createBatch", async () => {
  const made = await runs.createBatch(["x", "y"].map((one) => ({ assistantId: "steps", input: { trail: [one] } })));
  const ended = await Promise.all(made.map(({ thread_id, run_id }) => runs.join(thread_id, run_id)));
  assert.deepEqual(ended.map((one) => one.trail), [["x", "a", "b"], ["y", "a", "b"]]);
});

check("threads of stateless runs are not listed", async () => {
  const metadata = { team: unique("team") };
  const listed = async () => (await threads.search({ metadata })).map((one) => one.thread_id);
  await runs.wait(null, "steps", { input, metadata });
  assert.deepEqual(await listed(), []);
  const { thread_id, run_id } = await runs.create(null, "steps", { input, metadata, onCompletion: "keep" });
  await runs.join(thread_id, run_id);
  assert.deepEqual(await listed(), [thread_id]);
});
