import { assert, check, left, open, reached, unique, url } from "../harness.mjs";
import { assertGrew, mount, requests } from "./mount.mjs";
import { Client } from "@langchain/langgraph-sdk";

const client = new Client({ apiUrl: url });

export const SETTINGS = {
  default: {},
  fetchStateHistory: { fetchStateHistory: true },
  reconnectOnMount: { reconnectOnMount: true },
};

check("two pages on one thread", async () => {
  const { thread_id: threadId } = await client.threads.create();
  const gate = unique("hold");
  const first = mount({ threadId });
  await first.mounted();
  const one = first.say(gate);
  await reached(gate);
  await first.until((shown) => shown.texts[1] === "You said");
  let queued;
  const created = new Promise((done) => (queued = done));
  const second = mount({ threadId, onCreated: queued });
  await second.until((shown) => !shown.isThreadLoading && shown.texts.length === 1);
  const two = second.say("from elsewhere");
  assert.equal((await client.runs.get(threadId, (await created).run_id)).status, "pending");
  await open(gate);
  await Promise.all([one, two]);
  assert.deepEqual((await first.settled(2)).texts, [gate, `You said ${gate}`]);
  const all = [gate, `You said ${gate}`, "from elsewhere", "You said from elsewhere"];
  assert.deepEqual((await second.settled(4)).texts, all);
  for (const page of [first, second]) page.unmount();
});

check("an agent's tool calls", async () => {
  let thread;
  const chat = mount({ assistantId: "agent", onThreadId: (id) => (thread = id) });
  await chat.mounted();
  await chat.say("How is Bonn?");
  const answer = "It is 20 degrees and sunny.";
  const { texts } = await chat.until((shown) => !shown.isLoading && shown.texts.at(-1)?.trim() === answer);
  assert.equal(texts.length, 5);
  const called = (page) =>
    page.stream.toolCalls.map(({ call, result, state }) => [call.name, call.args, result.content, state]);
  const expected = [
    ["temperature", { city: "Bonn" }, "20 in Bonn", "completed"],
    ["sky", { city: "Bonn" }, "sunny in Bonn", "completed"],
  ];
  assert.deepEqual(called(chat), expected);
  chat.unmount();
  const again = mount({ assistantId: "agent", threadId: thread });
  await again.settled(5);
  assert.deepEqual(called(again), expected);
  again.unmount();
});

for (const [setting, options] of Object.entries(SETTINGS)) {
  check(`${setting}: a new thread`, async () => {
    const gate = unique("hold");
    const whole = `You said ${gate}`;
    let thread;
    const before = requests.length;
    const chat = mount({ ...options, onThreadId: (id) => (thread = id) });
    await chat.mounted();
    const answered = chat.shown.answered;
    const done = chat.say(gate, {
      optimisticValues: (prev) => ({ ...prev, messages: [{ type: "human", content: gate, id: "mine" }] }),
    });
    const optimistic = await chat.until((shown) => shown.texts[0] === gate);
    assert.deepEqual([optimistic.texts, optimistic.answered], [[gate], answered]);

    await reached(gate);
    await chat.until((shown) => shown.texts[1] === "You said" && shown.isLoading);
    await open(gate);
    await done;
    const final = await chat.settled(2);
    assert.deepEqual(final.texts, [gate, whole]);
    assertGrew(chat.renders, 1, whole);
    assert.equal(final.error, undefined);
    const kept = (await client.threads.getState(thread)).values.messages;
    assert.deepEqual(kept.map((one) => [one.content, one.id]), final.texts.map((text, n) => [text, final.ids[n]]));

    await chat.say("again");
    assert.deepEqual((await chat.settled(4)).texts, [gate, whole, "again", "You said again"]);
    const { body } = requests.slice(before).find((one) => one.path === `/threads/${thread}/runs/stream`);
    assert.deepEqual(body.stream_mode.toSorted(), ["messages-tuple", "values"]);
    assert.equal(body.on_disconnect, setting === "reconnectOnMount" ? "continue" : "cancel");
    chat.unmount();
  });

  check(`${setting}: a thread that was there before`, async () => {
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "chat", { input: { messages: [{ type: "human", content: "hello" }] } });
    const chat = mount({ ...options, threadId: thread_id });
    assert.deepEqual((await chat.settled(2)).texts, ["hello", "You said hello"]);
    await chat.say("again");
    assert.deepEqual((await chat.settled(4)).texts, ["hello", "You said hello", "again", "You said again"]);
    chat.unmount();
  });

  check(`${setting}: stop`, async () => {
    const gate = unique("hold");
    let run;
    const chat = mount({ ...options, onCreated: (created) => (run = created) });
    await chat.mounted();
    const done = chat.say(gate);
    await reached(gate);
    await chat.until((shown) => shown.texts[1] === "You said");
    await chat.stream.stop();
    await left(gate);
    await done;
    const stopped = await chat.until((shown) => !shown.isLoading);
    assert.deepEqual([stopped.texts[0], stopped.error], [gate, undefined]);
    await client.runs.join(run.thread_id, run.run_id);
    assert.equal((await client.runs.get(run.thread_id, run.run_id)).status, "interrupted");
    await chat.say("next");
    const texts = (await chat.settled(3)).texts;
    assert.deepEqual(texts, [gate, "next", "You said next"]);
    assert.deepEqual((await client.threads.getState(run.thread_id)).values.messages.map((one) => one.content), texts);
    chat.unmount();
  });

  check(`${setting}: the next message right after stop`, async () => {
    const gate = unique("hold");
    let run;
    const chat = mount({ ...options, onCreated: (created) => (run ??= created) });
    await chat.mounted();
    const done = chat.say(gate);
    await reached(gate);
    await chat.until((shown) => shown.texts[1] === "You said");
    const stopped = chat.stream.stop();
    const next = chat.say("next");
    await Promise.all([stopped, done, next]);
    assert.deepEqual((await chat.until((shown) => !shown.isLoading && shown.texts.length === 3)).texts, [
      gate,
      "next",
      "You said next",
    ]);
    assert.equal((await client.runs.get(run.thread_id, run.run_id)).status, "interrupted");
    chat.unmount();
  });

  check(`${setting}: an interrupt and its answer`, async () => {
    const ask = unique("ask");
    let thread;
    const chat = mount({ ...options, onThreadId: (id) => (thread = id) });
    await chat.mounted();
    await chat.say(ask);
    const asked = await chat.until((shown) => shown.interrupt && !shown.isLoading);
    assert.deepEqual([asked.texts, asked.interrupt.value], [[ask], { question: `${ask}?` }]);
    chat.unmount();

    const again = mount({ ...options, threadId: thread });
    const waiting = await again.until((shown) => shown.interrupt && !shown.isThreadLoading);
    assert.deepEqual([waiting.texts, waiting.interrupt.value], [[ask], { question: `${ask}?` }]);
    assert.equal(waiting.interrupt.id, asked.interrupt.id);
    await again.stream.submit(undefined, { command: { resume: "yes" } });
    const answered = await again.until((shown) => !shown.isLoading && !shown.interrupt && shown.texts.length === 2);
    assert.deepEqual(answered.texts, [ask, `You said ${ask} and answered yes`]);
    assert.equal(answered.error, undefined);
    again.unmount();
  });

  check(`${setting}: a node's error`, async () => {
    const fail = unique("fail");
    let thread;
    const told = [];
    const chat = mount({ ...options, onThreadId: (id) => (thread = id), onError: (error) => told.push(error.message) });
    await chat.mounted();
    await chat.say(fail);
    const failed = await chat.until((shown) => shown.error && !shown.isLoading);
    assert.deepEqual([failed.error.message, failed.error.name], [`boom: ${fail}`, "ValueError"]);
    assert.deepEqual(told, [`boom: ${fail}`]);
    chat.unmount();

    const again = mount({ ...options, threadId: thread });
    const seen = await again.until((shown) => shown.error && !shown.isThreadLoading);
    assert.equal(seen.error, `ValueError('boom: ${fail}')`);
    await again.say("next");
    const final = await again.until((shown) => !shown.isLoading && shown.texts.length === 3);
    assert.deepEqual([final.texts, (await again.until((shown) => !shown.error)).error], [
      [fail, "next", "You said next"],
      undefined,
    ]);
    again.unmount();
  });
}
