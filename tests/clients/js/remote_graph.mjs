// RemoteGraph of @langchain/langgraph: our graphs as if they were graphs of a JavaScript program.
import { randomUUID } from "node:crypto";
import { Annotation, Command, MemorySaver, START, StateGraph, isGraphInterrupt } from "@langchain/langgraph";
import { RemoteGraph } from "@langchain/langgraph/remote";
import { all, assert, check, makeChecks, url } from "./harness.mjs";

const remote = (graphId) => new RemoteGraph({ graphId, url });
const onThread = () => ({ configurable: { thread_id: randomUUID() } });
const input = { trail: ["in"] };

check("invoke", async () => {
  const config = onThread();
  for (const given of [undefined, config]) assert.deepEqual(await remote("steps").invoke(input, given), { trail: ["in", "a", "b"] });
  assert.deepEqual((await remote("steps").invoke({ trail: ["again"] }, config)).trail, ["in", "a", "b", "again", "a", "b"]);
});

check("stream", async () => {
  const streamed = async (graph, given, options) => all(await remote(graph).stream(given, options));
  assert.deepEqual(await streamed("steps", input, { streamMode: "updates" }), [{ a: { trail: ["a"] } }, { b: { trail: ["b"] } }]);
  const messages = [{ role: "human", content: "hello" }];
  const both = await streamed("chat", { messages }, { streamMode: ["messages", "custom"] });
  const text = both.filter(([mode]) => mode === "messages").map(([, [chunk]]) => chunk.content);
  assert.equal(text.join(""), "You said hello");
  assert.deepEqual(both.filter(([mode]) => mode === "custom"), [["custom", { heard: "hello" }]]);
});

check("an interrupt and its answer", async () => {
  const config = onThread();
  await assert.rejects(() => remote("asking").invoke(input, config), (error) => {
    assert(isGraphInterrupt(error));
    assert.deepEqual(error.interrupts[0].value, { question: "Proceed?" });
    return true;
  });
  assert.deepEqual((await remote("asking").getState(config)).next, ["ask"]);
  assert.equal((await remote("asking").invoke(new Command({ resume: "yes" }), config)).answer, "yes");
});

check("a node's error", async () => {
  await assert.rejects(() => remote("failing").invoke(input), /boom in plan/);
});

check("getState, getStateHistory, updateState", async () => {
  const [graph, config] = [remote("steps"), onThread()];
  await graph.invoke(input, config);
  assert.deepEqual((await graph.getState(config)).values, { trail: ["in", "a", "b"] });
  const history = await all(graph.getStateHistory(config));
  assert.deepEqual(history.map((one) => one.next), [[], ["b"], ["a"], ["__start__"]]);
  assert.deepEqual((await graph.getState(history[1].config)).values.trail, ["in", "a"]);
  const fork = await graph.updateState(history[1].config, { trail: ["fork"] }, "a");
  assert.deepEqual((await graph.getState(fork)).values.trail, ["in", "a", "fork"]);
  assert.deepEqual((await graph.invoke(null, config)).trail, ["in", "a", "fork", "b"]);
});

check("getGraphAsync", async () => {
  const drawn = await remote("nested").getGraphAsync({ xray: true });
  assert(Object.keys(drawn.nodes).some((id) => id.includes("sub_ask")));
});

check("as a node of another graph", async () => {
  const Trail = Annotation.Root({ trail: Annotation({ reducer: (_, b) => b, default: () => [] }), answer: Annotation() });
  const outer = new StateGraph(Trail)
    .addNode("before", ({ trail }) => ({ trail: [...trail, "before"] }))
    .addNode("remote", remote("steps"))
    .addEdge(START, "before")
    .addEdge("before", "remote")
    .compile({ checkpointer: new MemorySaver() });
  const config = onThread();
  assert.deepEqual((await outer.invoke(input, config)).trail, ["in", "before", "a", "b"]);
  const inside = await all(await outer.stream({ trail: ["x"] }, { ...onThread(), streamMode: "updates", subgraphs: true }));
  assert(inside.some(([namespace, update]) => namespace[0]?.startsWith("remote") && update.a), JSON.stringify(inside));
});

await makeChecks();
