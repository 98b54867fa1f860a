import { assert, check, url } from "../harness.mjs";
import { mount, requests } from "./mount.mjs";
import { Client } from "@langchain/langgraph-sdk";

const client = new Client({ apiUrl: url });

// By default the hook reads ten states, which do not reach back to the fork's beginning after some turns.
const fetchStateHistory = { limit: 100 };

async function twoTurns() {
  let thread;
  const chat = mount({ fetchStateHistory, onThreadId: (id) => (thread = id) });
  await chat.mounted();
  await chat.say("one");
  await chat.settled(2);
  await chat.say("two");
  await chat.settled(4);
  return [chat, () => thread];
}

const about = (chat, index) => chat.stream.getMessagesMetadata(chat.stream.messages[index], index);
const before = (chat, index) => about(chat, index).firstSeenState.parent_checkpoint;
const kept = async (thread) => (await client.threads.getState(thread)).values.messages.map((one) => one.content);
const showing = (chat, texts) =>
  chat.until((shown) => !shown.isLoading && JSON.stringify(shown.texts) === JSON.stringify(texts));

check("edit a message: a fork, both branches shown", async () => {
  const [chat, thread] = await twoTurns();
  const checkpoint = before(chat, 2);
  await chat.say("two, edited", { checkpoint });
  const edited = ["one", "You said one", "two, edited", "You said two, edited"];
  await showing(chat, edited);
  assert.deepEqual(await kept(thread()), edited);
  const request = requests.findLast((one) => one.path.endsWith("/runs/stream"));
  assert.deepEqual([request.body.checkpoint.checkpoint_id, request.body.checkpoint.checkpoint_ns], [
    checkpoint.checkpoint_id,
    "",
  ]);

  const { branch, branchOptions } = about(chat, 2);
  assert.equal(branchOptions.length, 2);
  assert.equal(branch, branchOptions[1]);
  assert.equal(about(chat, 0).branchOptions, undefined);
  chat.stream.setBranch(branchOptions[0]);
  await showing(chat, ["one", "You said one", "two", "You said two"]);
  chat.stream.setBranch(branchOptions[1]);
  await showing(chat, edited);
  chat.unmount();

  const again = mount({ fetchStateHistory, threadId: thread() });
  await showing(again, edited);
  assert.equal(about(again, 2).branchOptions.length, 2);
  again.unmount();
});

check("edit the first message, with the default history: a fork from the beginning", async () => {
  let id;
  const chat = mount({ fetchStateHistory: true, onThreadId: (created) => (id = created) });
  const thread = () => id;
  await chat.mounted();
  await chat.say("one");
  await chat.settled(2);
  await chat.say("one, edited", { checkpoint: before(chat, 0) });
  const edited = ["one, edited", "You said one, edited"];
  await showing(chat, edited);
  assert.deepEqual(await kept(thread()), edited);
  assert.equal(about(chat, 0).branchOptions.length, 2);
  chat.unmount();
});

check("regenerate an answer", async () => {
  const [chat, thread] = await twoTurns();
  const texts = chat.shown.texts;
  const [, , , first] = chat.shown.ids;
  await chat.stream.submit(undefined, { checkpoint: before(chat, 3) });
  const shown = await chat.until((one) => !one.isLoading && one.texts.length === 4 && one.ids[3] !== first);
  assert.deepEqual(shown.texts, texts);
  const { branch, branchOptions } = about(chat, 3);
  assert.deepEqual([branchOptions.length, branch], [2, branchOptions[1]]);
  assert.deepEqual(await kept(thread()), texts);
  chat.stream.setBranch(branchOptions[0]);
  assert.equal((await chat.until((one) => one.ids[3] === first)).texts.length, 4);

  // The hook goes on from the branch that is shown, and shows the branch that began last: so it is chosen again.
  await chat.say("three");
  const continued = [...texts, "three", "You said three"];
  assert.deepEqual(await kept(thread()), continued);
  chat.stream.setBranch(branchOptions[0]);
  assert.equal((await showing(chat, continued)).ids[3], first);
  chat.unmount();
});
