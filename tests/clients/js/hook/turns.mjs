import { assert, check, left, open, reached, unique, url } from "../harness.mjs";
import { assertGrew, mount, requests } from "./mount.mjs";
import { Client } from "@langchain/langgraph-sdk";

const client = new Client({ apiUrl: url });

export const SETTINGS = {
  default: {},
  fetchStateHistory: { fetchStateHistory: true },
  reconnectOnMount: { reconnectOnMount: true },
};

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
