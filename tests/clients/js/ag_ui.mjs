// LangGraphAgent of @ag-ui/langgraph, on which CopilotKit's runtime stands.
import { randomUUID } from "node:crypto";
import { LangGraphAgent } from "@ag-ui/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { assert, check, left, makeChecks, reached, unique, url } from "./harness.mjs";

const client = new Client({ apiUrl: url });
const user = (content) => ({ id: randomUUID(), role: "user", content });
const newAgent = (options) => {
  const agent = new LangGraphAgent({ deploymentUrl: url, graphId: "chat", threadId: randomUUID(), ...options });
  const events = [];
  agent.subscribe({ onEvent: ({ event }) => void events.push(event) });
  return [agent, events];
};
const kinds = (events) => events.map((one) => one.type);
const spoken = (events) =>
  events.filter((one) => one.type === "TEXT_MESSAGE_CONTENT").map((one) => one.delta).join("");
const contents = (messages) => messages.map((one) => one.content);

check("a turn", async () => {
  const [agent, events] = newAgent();
  agent.addMessage(user("hello"));
  await agent.runAgent();
  const seen = kinds(events);
  assert.equal(seen[0], "RUN_STARTED");
  assert.equal(seen.at(-1), "RUN_FINISHED");
  for (const kind of ["TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT"]) {
    assert(seen.includes(kind), kind);
  }
  assert(events.filter((one) => one.type === "TEXT_MESSAGE_CONTENT").length >= 3);
  assert.equal(spoken(events), "You said hello");
  assert.deepEqual(contents(agent.messages), ["hello", "You said hello"]);
  const { values } = await client.threads.getState(agent.threadId);
  assert.deepEqual(contents(values.messages), ["hello", "You said hello"]);
  assert.equal(agent.messages[1].id, values.messages[1].id);
  const steps = events.filter((one) => one.type === "STEP_STARTED").map((one) => one.stepName);
  assert.deepEqual(steps, ["listen", "talk"]);
});

check("a second turn on the same thread", async () => {
  const [agent, events] = newAgent();
  for (const text of ["one", "two"]) {
    agent.addMessage(user(text));
    await agent.runAgent();
  }
  assert.deepEqual(contents(agent.messages), ["one", "You said one", "two", "You said two"]);
  assert.equal(kinds(events).filter((kind) => kind === "RUN_FINISHED").length, 2);
});

const toolCall = (events, id) => events.filter((one) => one.type.startsWith("TOOL_CALL") && one.toolCallId === id);
const argumentsOf = (told) => told.filter((one) => one.type === "TOOL_CALL_ARGS").map((one) => one.delta);
const rolesAtTheEnd = (events) =>
  events.findLast((one) => one.type === "MESSAGES_SNAPSHOT").messages.map((one) => one.role);

check("a tool call", async () => {
  const [agent, events] = newAgent({ graphId: "calling" });
  agent.addMessage(user("How warm is it in Bonn?"));
  await agent.runAgent();
  const told = toolCall(events, "call-1");
  const pieces = ["TOOL_CALL_ARGS", "TOOL_CALL_ARGS"];
  assert.deepEqual(kinds(told), ["TOOL_CALL_START", ...pieces, "TOOL_CALL_END", "TOOL_CALL_RESULT"]);
  assert.equal(told[0].toolCallName, "temperature");
  assert.deepEqual(argumentsOf(told), ['{"city": ', '"Bonn"}']);
  assert.equal(told.at(-1).content, "20 in Bonn");
  assert.equal(spoken(events).trim(), "It is 20 degrees and sunny.");
  assert.deepEqual(rolesAtTheEnd(events), ["user", "assistant", "tool", "assistant"]);
});

check("two tool calls at once", async () => {
  const [agent, events] = newAgent({ graphId: "agent" });
  agent.addMessage(user("How is the weather in Bonn?"));
  await agent.runAgent();
  for (const [id, name, result] of [["call-1", "temperature", "20 in Bonn"], ["call-2", "sky", "sunny in Bonn"]]) {
    const told = toolCall(events, id);
    // The agent passes over arguments that come together with their tool's name.
    const others = told.filter((one) => one.type !== "TOOL_CALL_ARGS");
    assert.deepEqual(kinds(others), ["TOOL_CALL_START", "TOOL_CALL_END", "TOOL_CALL_RESULT"]);
    assert.equal(told[0].toolCallName, name);
    assert.equal(told.at(-1).content, result);
  }
  assert.deepEqual(rolesAtTheEnd(events), ["user", "assistant", "tool", "tool", "assistant"]);
});

for (const emitInterruptOutcome of [false, true]) {
  check(`an interrupt and its answer, ${emitInterruptOutcome ? "as an outcome" : "as it is by default"}`, async () => {
    const [agent, events] = newAgent({ emitInterruptOutcome });
    const ask = unique("ask");
    agent.addMessage(user(ask));
    await agent.runAgent();
    const asked = events.find((one) => one.type === "CUSTOM" && one.name === "on_interrupt");
    assert.deepEqual(JSON.parse(asked.value), { question: `${ask}?` });
    const { outcome } = events.at(-1);
    if (emitInterruptOutcome) {
      const [{ id }] = outcome.interrupts;
      await agent.runAgent({ resume: [{ interruptId: id, status: "resolved", payload: "yes" }] });
    } else {
      await agent.runAgent({ forwardedProps: { command: { resume: "yes" } } });
    }
    assert.equal(kinds(events).at(-1), "RUN_FINISHED");
    assert.deepEqual(contents(agent.messages).slice(0, 1), [ask]);
    assert.match(contents(agent.messages)[1], new RegExp(`^You said ${ask} and answered .*yes`));
  });
}

check("a node's error", async () => {
  const [agent, events] = newAgent();
  agent.addMessage(user(unique("fail")));
  await agent.runAgent().catch(() => null);
  assert(kinds(events).includes("RUN_ERROR"));
});

check("regenerate", async () => {
  const [agent] = newAgent();
  for (const text of ["one", "two"]) {
    agent.addMessage(user(text));
    await agent.runAgent();
  }
  const [one, saidOne] = agent.messages;
  const edited = { ...agent.messages[2], content: "two, edited" };
  // The agent takes it for an edit only if the frontend gave one of its messages an id of its own.
  agent.setMessages([one, { ...saidOne, id: randomUUID() }, edited]);
  await agent.runAgent();
  const { values } = await client.threads.getState(agent.threadId);
  assert.deepEqual(contents(values.messages), ["one", "You said one", "two, edited", "You said two, edited"]);
  assert(contents(agent.messages).includes("You said two, edited"));
});

check("abortRun", async () => {
  const [agent] = newAgent();
  const gate = unique("hold");
  const streaming = new Promise((done) => agent.subscribe({ onTextMessageContentEvent: () => done() }));
  agent.addMessage(user(gate));
  const running = agent.runAgent().catch(() => null);
  await reached(gate);
  await streaming;
  agent.abortRun();
  await left(gate);
  await running;
  const [run] = await client.runs.list(agent.threadId);
  await client.runs.join(agent.threadId, run.run_id);
  assert.equal((await client.runs.get(agent.threadId, run.run_id)).status, "interrupted");
});

await makeChecks();
