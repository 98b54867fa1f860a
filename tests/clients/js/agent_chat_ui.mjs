// What agent-chat-ui does: the requests of its providers, written again here, since it is an app and no package.
import { Client } from "@langchain/langgraph-sdk";
import { assert, check, makeChecks, open, reached, unique, url } from "./harness.mjs";
import { assertGrew, mount, requests } from "./hook/mount.mjs";

const apiKey = "any";
const client = new Client({ apiUrl: url, apiKey });
const SUBMIT = { streamMode: ["values"], streamSubgraphs: true, streamResumable: true };

const isUuid = (text) => /^[0-9a-f-]{36}$/.test(text);
const searched = async (assistantId) => {
  const metadata = isUuid(assistantId) ? { assistant_id: assistantId } : { graph_id: assistantId };
  return (await client.threads.search({ metadata, limit: 100 })).map((one) => one.thread_id);
};

check("a session", async () => {
  const info = await fetch(`${url}/info`, { headers: { "X-Api-Key": apiKey } });
  assert(info.ok);
  const { version, flags } = await info.json();
  assert(version && flags.assistants);

  const gate = unique("hold");
  const customs = [];
  let thread;
  const chat = mount({
    apiKey,
    threadId: null,
    fetchStateHistory: true,
    onCustomEvent: (event, { mutate }) => {
      customs.push(event);
      mutate((prev) => ({ ...prev, ui: [event] }));
    },
    onThreadId: (id) => (thread = id),
  });
  await chat.mounted();
  const human = { id: crypto.randomUUID(), type: "human", content: [{ type: "text", text: gate }] };
  const done = chat.stream.submit(
    { messages: [human], context: undefined },
    { ...SUBMIT, optimisticValues: (prev) => ({ ...prev, messages: [...(prev.messages ?? []), human] }) },
  );
  await chat.until((shown) => shown.texts.length === 1);
  await reached(gate);
  await chat.until((shown) => shown.texts[1] === "You said");
  await open(gate);
  await done;
  assertGrew(chat.renders, 1, `You said ${gate}`);
  assert.deepEqual(customs, [{ heard: gate }]);
  const { body, headers } = requests.find((one) => one.path === `/threads/${thread}/runs/stream`);
  assert.deepEqual(body.stream_mode.toSorted(), ["custom", "messages-tuple", "values"]);
  assert.deepEqual([body.stream_subgraphs, body.stream_resumable], [true, true]);
  assert.equal(headers.get("x-api-key"), apiKey);
  chat.unmount();

  const { assistant_id } = (await client.assistants.search({ graphId: "chat" }))[0];
  for (const name of ["chat", assistant_id]) assert((await searched(name)).includes(thread), name);
  assert(!(await searched("steps")).includes(thread));

  // Another thread of the list is opened, an answer is made anew, a question answered.
  const opened = mount({ apiKey, fetchStateHistory: true, threadId: thread, onCustomEvent: () => {} });
  const before = await opened.settled(2);
  const { firstSeenState } = opened.stream.getMessagesMetadata(opened.stream.messages[1]);
  await opened.stream.submit(undefined, { checkpoint: firstSeenState.parent_checkpoint, ...SUBMIT });
  const anew = await opened.until((shown) => !shown.isLoading && shown.ids[1] && shown.ids[1] !== before.ids[1]);
  assert.deepEqual(anew.texts, before.texts);
  assert.equal(opened.stream.getMessagesMetadata(opened.stream.messages[1]).branchOptions.length, 2);

  const ask = unique("ask");
  await opened.say(ask, SUBMIT);
  await opened.until((shown) => shown.interrupt && !shown.isLoading);
  await opened.stream.submit({}, { command: { resume: "yes" }, ...SUBMIT });
  const { texts, interrupt } = await opened.until((shown) => !shown.isLoading && shown.texts.length === 4);
  assert.deepEqual([texts.at(-1), interrupt], [`You said ${ask} and answered yes`, undefined]);
  opened.unmount();
});

await makeChecks();
