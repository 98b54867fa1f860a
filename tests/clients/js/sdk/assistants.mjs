import { randomUUID } from "node:crypto";
import { assert, check, refused, unique } from "../harness.mjs";
import { client } from "./client.mjs";

const { assistants } = client;
const STEPS = "steps";
const made = (fields = {}) => assistants.create({ graphId: STEPS, name: unique("made"), ...fields });

check("assistants.search", async () => {
  const every = await assistants.search({ limit: 100 });
  for (const graph of ["steps", "chat"]) {
    assert(every.some((one) => one.graph_id === graph && one.name === graph && one.metadata.created_by === "system"));
  }
  const [system, ...rest] = await assistants.search({ graphId: "chat", sortBy: "created_at", sortOrder: "asc" });
  assert.equal(system.graph_id, "chat");
  assert.deepEqual(rest, []);
  assert.deepEqual(await assistants.search({ metadata: { nobody: "has" } }), []);
});

check("assistants.search by page", async () => {
  const team = unique("team");
  const ids = [];
  for (let n = 0; n < 3; n++) ids.push((await made({ metadata: { team } })).assistant_id);
  const query = { metadata: { team }, limit: 2, sortBy: "created_at", sortOrder: "asc", includePagination: true };
  const first = await assistants.search(query);
  assert.deepEqual(first.assistants.map((one) => one.assistant_id), ids.slice(0, 2));
  const second = await assistants.search({ ...query, offset: Number(first.next) });
  assert.deepEqual(second.assistants.map((one) => one.assistant_id), ids.slice(2));
  assert.equal(second.next, null);
});

check("assistants.search with select", async () => {
  const { name, assistant_id } = await made();
  assert.deepEqual(await assistants.search({ name, select: ["assistant_id", "name"] }), [{ assistant_id, name }]);
});

check("assistants.count", async () => {
  const team = unique("team");
  assert.equal(await assistants.count({ metadata: { team } }), 0);
  await made({ metadata: { team } });
  await made({ metadata: { team } });
  assert.equal(await assistants.count({ metadata: { team } }), 2);
  assert.equal(await assistants.count({ metadata: { team }, graphId: "chat" }), 0);
});

check("assistants.create", async () => {
  const assistantId = randomUUID();
  const given = { assistantId, name: "Anna", description: "first", metadata: { a: 1 }, context: { lang: "de" } };
  const one = await made(given);
  assert.deepEqual(
    [one.assistant_id, one.graph_id, one.name, one.description, one.metadata, one.context, one.version],
    [assistantId, STEPS, "Anna", "first", { a: 1 }, { lang: "de" }, 1],
  );
  await refused(409, () => made({ assistantId }));
  assert.equal((await made({ assistantId, ifExists: "do_nothing", name: "Bert" })).name, "Anna");
  await refused(404, () => made({ graphId: "nope" }));
});

check("assistants.get", async () => {
  const one = await made();
  assert.deepEqual(await assistants.get(one.assistant_id), one);
  await refused(404, () => assistants.get(randomUUID()));
});

check("assistants.update", async () => {
  const { assistant_id } = await made({ metadata: { a: 1 } });
  const changed = await assistants.update(assistant_id, { name: "Carl", metadata: { b: 2 }, description: "second" });
  assert.deepEqual([changed.name, changed.metadata, changed.version], ["Carl", { a: 1, b: 2 }, 2]);
  assert.deepEqual(await assistants.get(assistant_id), changed);
});

check("assistants.getVersions", async () => {
  const { assistant_id } = await made({ name: "one" });
  await assistants.update(assistant_id, { name: "two" });
  const versions = await assistants.getVersions(assistant_id);
  assert.deepEqual(versions.map((one) => [one.version, one.name]), [[2, "two"], [1, "one"]]);
  assert.equal((await assistants.getVersions(assistant_id, { limit: 1, offset: 1 }))[0].version, 1);
});

check("assistants.setLatest", async () => {
  const { assistant_id } = await made({ name: "one" });
  await assistants.update(assistant_id, { name: "two" });
  assert.equal((await assistants.setLatest(assistant_id, 1)).name, "one");
  assert.equal((await assistants.get(assistant_id)).name, "one");
});

check("assistants.delete", async () => {
  const { assistant_id } = await made();
  await assistants.delete(assistant_id);
  await refused(404, () => assistants.get(assistant_id));
});

check("assistants.getGraph", async () => {
  const { nodes, edges } = await assistants.getGraph(STEPS);
  assert.deepEqual(nodes.map((one) => one.id), ["__start__", "a", "b", "__end__"]);
  assert(edges.some((one) => one.source === "a" && one.target === "b"));
});

check("assistants.getGraph with xray", async () => {
  const inside = async (xray) => (await assistants.getGraph("nested", { xray })).nodes.map((one) => one.id);
  assert(!(await inside(false)).some((id) => id.includes("sub_ask")));
  for (const xray of [true, 1]) assert((await inside(xray)).some((id) => id.includes("sub_ask")));
});

check("assistants.getSchemas", async () => {
  const schemas = await assistants.getSchemas((await made()).assistant_id);
  assert.equal(schemas.graph_id, STEPS);
  for (const one of ["input_schema", "output_schema", "state_schema"]) assert("trail" in schemas[one].properties, one);
  assert("config_schema" in schemas && "context_schema" in schemas);
});

check("assistants.getSubgraphs", async () => {
  const { child } = await assistants.getSubgraphs("nested");
  assert("trail" in child.input_schema.properties);
  assert.deepEqual(Object.keys(await assistants.getSubgraphs("nested", { namespace: "child", recurse: true })), ["child"]);
  assert.deepEqual(await assistants.getSubgraphs("steps"), {});
});
