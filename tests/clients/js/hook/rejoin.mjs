import { assert, check, cut, cutUrl, open, reached, unique, url } from "../harness.mjs";
import { assertGrew, mount, requests } from "./mount.mjs";
import { Client } from "@langchain/langgraph-sdk";

const client = new Client({ apiUrl: url });

for (const fetchStateHistory of [false, true]) {
  const setting = `reconnectOnMount${fetchStateHistory ? " with history" : ""}`;
  const options = { reconnectOnMount: true, fetchStateHistory };

  /** Starts a turn and leaves in the middle of it; returns what is needed to come back. */
  async function left() {
    const gate = unique("hold");
    let run;
    const chat = mount({ ...options, onCreated: (created) => (run = created) });
    await chat.mounted();
    chat.say(gate);
    await reached(gate);
    const { ids } = await chat.until((shown) => shown.texts[1] === "You said");
    chat.unmount();
    return { gate, run, ids, whole: `You said ${gate}` };
  }

  const rejoins = (run, since) =>
    requests.slice(since).filter((one) => one.path.startsWith(`/threads/${run.thread_id}/runs/${run.run_id}/stream`));

  check(`${setting}: rejoins in mid-stream`, async () => {
    const { gate, run, ids, whole } = await left();
    const since = requests.length;
    const chat = mount({ ...options, threadId: run.thread_id });
    await chat.until((shown) => shown.isLoading && shown.texts[1] === "You said");
    await open(gate);
    const final = await chat.until((shown) => !shown.isLoading && shown.texts[1] === whole);
    assert.deepEqual([final.texts, final.ids[1]], [[gate, whole], ids[1]]);
    assertGrew(chat.renders, 1, whole);
    const [rejoin, ...rest] = rejoins(run, since);
    assert.deepEqual([rejoin.headers.get("last-event-id"), rest], ["-1", []]);

    await chat.say("again");
    assert.deepEqual((await chat.settled(4)).texts, [gate, whole, "again", "You said again"]);
    chat.unmount();
  });

  check(`${setting}: comes back after the end`, async () => {
    const { gate, run, whole } = await left();
    await open(gate);
    await client.runs.join(run.thread_id, run.run_id);
    const since = requests.length;
    const chat = mount({ ...options, threadId: run.thread_id });
    await chat.until(() => window.sessionStorage.getItem(`lg:stream:${run.thread_id}`) === null);
    assert.deepEqual((await chat.settled(2)).texts, [gate, whole]);
    assert(rejoins(run, since).length <= 1);
    chat.unmount();
  });

  check(`${setting}: stops what it rejoined`, async () => {
    const { gate, run } = await left();
    const chat = mount({ ...options, threadId: run.thread_id });
    await chat.until((shown) => shown.isLoading && shown.texts[1] === "You said");
    const since = requests.length;
    await chat.stream.stop();
    await client.runs.join(run.thread_id, run.run_id);
    assert.equal((await client.runs.get(run.thread_id, run.run_id)).status, "interrupted");
    const cancel = requests.slice(since).find((one) => one.path.includes("/cancel"));
    assert.equal(cancel.path, `/threads/${run.thread_id}/runs/${run.run_id}/cancel?wait=0&action=interrupt`);
    await chat.until((shown) => !shown.isLoading);
    await chat.say("next");
    assert.deepEqual((await chat.settled(3)).texts, [gate, "next", "You said next"]);
    chat.unmount();
  });
}

check("a connection that is cut in mid-stream", async () => {
  const gate = unique("hold");
  const chat = mount({ apiUrl: cutUrl, reconnectOnMount: true });
  await chat.mounted();
  const done = chat.say(gate);
  await reached(gate);
  await chat.until((shown) => shown.texts[1] === "You said");
  await cut();
  await open(gate);
  await done;
  assert.deepEqual((await chat.settled(2)).texts, [gate, `You said ${gate}`]);
  assert.equal(chat.shown.error, undefined);
  assertGrew(chat.renders, 1, `You said ${gate}`);
  const last = requests.findLast((one) => one.path.includes("/stream"));
  assert.deepEqual([last.method, last.headers.has("last-event-id")], ["GET", true]);
  chat.unmount();
});

check("an answer that is begun anew replaces what was shown of it", async () => {
  const gate = unique("twice");
  const chat = mount({});
  await chat.mounted();
  const done = chat.say(gate);
  await reached(gate);
  const { ids } = await chat.until((shown) => shown.texts[1] === "You said");
  await open(gate);
  await done;
  const final = await chat.settled(2);
  assert.deepEqual(final.texts, [gate, `You said ${gate}`]);
  assert.notEqual(final.ids[1], ids[1]);
  assert(chat.renders.every((shown) => shown.texts.length <= 2));
  chat.unmount();
});

check("joinStream from where it was left", async () => {
  const gate = unique("hold");
  const { thread_id } = await client.threads.create();
  const { run_id } = await client.runs.create(thread_id, "chat", {
    input: { messages: [{ type: "human", content: gate }] },
    streamMode: ["values", "messages-tuple"],
    streamResumable: true,
  });
  await reached(gate);
  const chat = mount({ threadId: thread_id });
  await chat.until((shown) => !shown.isThreadLoading && shown.texts.length === 1);
  const joined = chat.stream.joinStream(run_id);
  await chat.until((shown) => shown.texts[1] === "You said");
  await open(gate);
  await joined;
  assert.deepEqual((await chat.settled(2)).texts, [gate, `You said ${gate}`]);
  chat.unmount();
});
