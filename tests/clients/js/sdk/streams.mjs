import { Client } from "@langchain/langgraph-sdk";
import { all, assert, check, cut, cutUrl, open, reached, unique } from "../harness.mjs";
import { client, newThread } from "./client.mjs";

const { runs, threads } = client;
const say = (text) => ({ messages: [{ role: "human", content: text }] });
const input = { trail: ["in"] };

async function streamed(graph, payload) {
  const events = await all(runs.stream(await newThread(), graph, payload));
  assert.equal(events[0].event, "metadata");
  assert.match(events[0].data.run_id, /^[0-9a-f-]{36}$/);
  return events.slice(1).map(({ event, data }) => [event, data]);
}

check("runs.stream values", async () => {
  assert.deepEqual(await streamed("steps", { input, streamMode: "values" }), [
    ["values", { trail: ["in"] }],
    ["values", { trail: ["in", "a"] }],
    ["values", { trail: ["in", "a", "b"] }],
  ]);
});

check("runs.stream updates", async () => {
  assert.deepEqual(await streamed("steps", { input, streamMode: "updates" }), [
    ["updates", { a: { trail: ["a"] } }],
    ["updates", { b: { trail: ["b"] } }],
  ]);
});

check("runs.stream messages-tuple", async () => {
  const events = await streamed("chat", { input: say("hello"), streamMode: "messages-tuple" });
  const tokens = events.map(([event, [chunk, metadata]]) => {
    assert.deepEqual([event, chunk.type, metadata.langgraph_node], ["messages", "AIMessageChunk", "talk"]);
    return chunk;
  });
  assert(tokens.length >= 3);
  assert.equal(tokens.map((one) => one.content).join(""), "You said hello");
  assert.equal(new Set(tokens.map((one) => one.id)).size, 1);
});

check("runs.stream messages", async () => {
  const events = await streamed("chat", { input: say("hello"), streamMode: "messages" });
  assert.equal(events[0][0], "messages/metadata");
  const partial = events.filter(([event]) => event === "messages/partial").map(([, [message]]) => message.content);
  assert.deepEqual([partial[0], partial.at(-1)], ["You", "You said hello"]);
});

check("runs.stream custom", async () => {
  assert.deepEqual(await streamed("chat", { input: say("hello"), streamMode: "custom" }), [
    ["custom", { heard: "hello" }],
  ]);
});

check("runs.stream events", async () => {
  const events = await streamed("chat", { input: say("hello"), streamMode: "events" });
  assert(events.every(([event]) => event === "events"));
  const seen = events.map(([, { event, name }]) => `${event} ${name}`);
  assert.equal(seen[0], "on_chain_start chat");
  assert.equal(seen.at(-1), "on_chain_end chat");
  for (const one of ["on_chain_start listen", "on_chain_end listen", "on_chat_model_end Words", "on_chain_end talk"]) {
    assert.equal(seen.filter((other) => other === one).length, 1, one);
  }
  const words = events.filter(([, { event }]) => event === "on_chat_model_stream").map(([, { data }]) => data.chunk);
  assert.equal(words.map((one) => one.content).join(""), "You said hello");
});

check("runs.stream tasks", async () => {
  const events = await streamed("steps", { input, streamMode: "tasks" });
  assert.deepEqual(events.map(([event, data]) => [event, data.name, "result" in data]), [
    ["tasks", "a", false],
    ["tasks", "a", true],
    ["tasks", "b", false],
    ["tasks", "b", true],
  ]);
});

check("runs.stream checkpoints", async () => {
  const events = await streamed("steps", { input, streamMode: "checkpoints" });
  assert.deepEqual(events.map(([event, data]) => [event, data.next]), [
    ["checkpoints", ["__start__"]],
    ["checkpoints", ["a"]],
    ["checkpoints", ["b"]],
    ["checkpoints", []],
  ]);
});

check("runs.stream debug", async () => {
  const events = await streamed("steps", { input, streamMode: "debug" });
  assert.deepEqual(new Set(events.map(([event, data]) => `${event} ${data.type}`)), new Set([
    "debug checkpoint",
    "debug task",
    "debug task_result",
  ]));
});

check("runs.stream several modes", async () => {
  const streamMode = ["values", "updates", "messages-tuple", "custom", "tools", "lifecycle"];
  const names = new Set((await streamed("chat", { input: say("hello"), streamMode })).map(([event]) => event));
  for (const name of ["values", "updates", "messages", "custom"]) assert(names.has(name), name);
});

check("runs.stream subgraphs", async () => {
  const events = await streamed("nested", { input, streamMode: ["values", "updates"], streamSubgraphs: true });
  assert(events.some(([event]) => /^values\|child:/.test(event)));
  assert(events.some(([event, data]) => event === "updates" && data.__interrupt__));
});

check("runs.stream shows an interrupt", async () => {
  const events = await streamed("asking", { input, streamMode: "values" });
  assert.deepEqual(events.at(-1)[1].__interrupt__[0].value, { question: "Proceed?" });
});

check("runs.stream ends with a node's error", async () => {
  const events = await streamed("failing", { input });
  assert.deepEqual(events.at(-1), ["error", { error: "ValueError", message: "boom in plan" }]);
});

check("runs.joinStream from the beginning and from an event", async () => {
  const thread = await newThread();
  const whole = await all(runs.stream(thread, "chat", {
    input: say("hello"),
    streamMode: ["values", "messages-tuple"],
    streamResumable: true,
  }));
  const { run_id } = whole[0].data;
  assert(whole.every((one) => one.id));
  assert.deepEqual(await all(runs.joinStream(thread, run_id, { lastEventId: "-1" })), whole);
  const rest = await all(runs.joinStream(thread, run_id, { lastEventId: whole[2].id }));
  assert.deepEqual(rest, whole.slice(3));
  const values = await all(runs.joinStream(thread, run_id, { lastEventId: "-1", streamMode: "values" }));
  assert.deepEqual(values, whole.filter((one) => one.event === "values"));
});

check("runs.joinStream while it runs", async () => {
  const [thread, gate] = [await newThread(), unique("hold")];
  const { run_id } = await runs.create(thread, "chat", {
    input: say(gate),
    streamMode: "messages-tuple",
    streamResumable: true,
  });
  await reached(gate);
  let text = "";
  for await (const { event, data } of runs.joinStream(thread, run_id, { lastEventId: "-1" })) {
    if (event !== "messages") continue;
    text += data[0].content;
    if (text === "You said") await open(gate);
  }
  assert.equal(text, `You said ${gate}`);
});

check("runs.stream goes on when its connection is cut", async () => {
  const again = [];
  const onRequest = (target, init) => {
    if (init.method === "GET" && target.pathname.endsWith("/stream")) again.push(new Headers(init.headers));
    return init;
  };
  const { runs } = new Client({ apiUrl: cutUrl, onRequest });
  for (const streamResumable of [false, true]) {
    const gate = unique("hold");
    let text = "";
    const seen = [];
    const payload = { input: say(gate), streamMode: ["messages-tuple", "values"], streamResumable };
    for await (const { event, data } of runs.stream(await newThread(), "chat", payload)) {
      seen.push(event);
      if (event !== "messages") continue;
      text += data[0].content;
      if (text === "You said") {
        await cut();
        await open(gate);
      }
    }
    assert.equal(text, `You said ${gate}`);
    assert.deepEqual(seen.filter((event) => event !== "messages"), ["metadata", ...Array(3).fill("values")]);
  }
  assert.deepEqual(again.map((headers) => headers.has("last-event-id")), [true, true]);
});

check("runs.stream that is left is cancelled if asked", async () => {
  for (const [onDisconnect, status] of [["cancel", "interrupted"], ["continue", "success"]]) {
    const [thread, gate] = [await newThread(), unique("hold")];
    const leaving = new AbortController();
    let created;
    const stream = runs.stream(thread, "chat", {
      input: say(gate),
      onDisconnect,
      signal: leaving.signal,
      onRunCreated: (run) => (created = run),
    });
    const reading = all(stream).catch(() => null);
    await reached(gate);
    leaving.abort();
    await reading;
    if (onDisconnect === "continue") await open(gate);
    await runs.join(thread, created.run_id);
    assert.equal((await runs.get(thread, created.run_id)).status, status);
  }
  assert((await threads.search({ status: "interrupted", limit: 1 })).length);
});
