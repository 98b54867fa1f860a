import { assert, check, unique } from "../harness.mjs";
import { client } from "./client.mjs";

const { store } = client;

check("store.putItem and getItem", async () => {
  const namespace = [unique("user"), "notes"];
  assert.equal(await store.getItem(namespace, "k"), null);
  await store.putItem(namespace, "k", { text: "first" });
  await store.putItem(namespace, "k", { text: "second" }, { index: false });
  const item = await store.getItem(namespace, "k");
  assert.deepEqual([item.namespace, item.key, item.value], [namespace, "k", { text: "second" }]);
  assert(item.updatedAt >= item.createdAt);
});

check("store.deleteItem", async () => {
  const namespace = [unique("user")];
  await store.putItem(namespace, "k", { a: 1 });
  await store.deleteItem(namespace, "k");
  assert.equal(await store.getItem(namespace, "k"), null);
  await store.deleteItem(namespace, "k");
});

check("store.searchItems", async () => {
  const user = unique("user");
  await store.putItem([user, "notes"], "a", { colour: "red" });
  await store.putItem([user, "notes"], "b", { colour: "blue" });
  await store.putItem([user, "tasks"], "c", { colour: "red" });
  const keys = async (prefix, options) => (await store.searchItems(prefix, options)).items.map((one) => one.key).sort();
  assert.deepEqual(await keys([user]), ["a", "b", "c"]);
  assert.deepEqual(await keys([user, "notes"]), ["a", "b"]);
  assert.deepEqual(await keys([user], { filter: { colour: "red" } }), ["a", "c"]);
  assert.equal((await keys([user], { limit: 2 })).length, 2);
  assert.equal((await keys([user], { offset: 2 })).length, 1);
});

check("store.listNamespaces", async () => {
  const user = unique("user");
  await store.putItem([user, "notes", "work"], "a", {});
  await store.putItem([user, "tasks"], "b", {});
  const listed = async (options) => (await store.listNamespaces({ prefix: [user], ...options })).namespaces;
  assert.deepEqual(await listed({}), [[user, "notes", "work"], [user, "tasks"]]);
  assert.deepEqual(await listed({ maxDepth: 2 }), [[user, "notes"], [user, "tasks"]]);
  assert.deepEqual(await listed({ suffix: ["tasks"] }), [[user, "tasks"]]);
});
