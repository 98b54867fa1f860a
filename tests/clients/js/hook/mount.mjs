// A page of jsdom with a component on it that uses the hook, and what it shows at each render.
import { JSDOM } from "jsdom";
import { assert, cutUrl, url } from "../harness.mjs";

const page = new JSDOM("<!doctype html><body></body>", { url: "http://localhost/" });
Object.assign(globalThis, { window: page.window, document: page.window.document });

/** Requests that clients made, in order: {method, path, headers, body}, and `answered` once they are. */
export const requests = [];
const plainFetch = globalThis.fetch;
globalThis.fetch = async (target, init = {}) => {
  const { pathname, search, origin } = new URL(target);
  if (![url, cutUrl].includes(origin)) return plainFetch(target, init);
  const body = init.body ? JSON.parse(init.body) : undefined;
  const request = { method: init.method ?? "GET", path: pathname + search, headers: new Headers(init.headers), body };
  requests.push(request);
  const answered = await plainFetch(target, init);
  request.answered = true;
  return answered;
};

const { createElement, useEffect } = await import("react");
const { createRoot } = await import("react-dom/client");
const { useStream } = await import("@langchain/langgraph-sdk/react");

/** Renders a component that uses the hook; returns what shows it. */
export function mount(options) {
  const root = createRoot(document.createElement("div"));
  const renders = [];
  const waiting = new Set();
  let stream;

  function Chat() {
    stream = useStream({ apiUrl: url, assistantId: "chat", ...options });
    const shown = {
      texts: stream.messages.map((one) => one.content),
      ids: stream.messages.map((one) => one.id),
      isLoading: stream.isLoading,
      isThreadLoading: stream.isThreadLoading,
      interrupt: stream.interrupt,
      error: stream.error,
      answered: requests.filter((one) => one.answered).length,
    };
    useEffect(() => {
      renders.push(shown);
      for (const waiter of waiting) waiter(shown);
    });
    return null;
  }
  root.render(createElement(Chat));

  /** Waits until something is shown; returns it. Only what is shown from now on counts. */
  const until = (wanted) => {
    const last = renders.at(-1);
    if (last && wanted(last)) return Promise.resolve(last);
    return new Promise((done) => {
      const waiter = (shown) => {
        if (!wanted(shown)) return;
        waiting.delete(waiter);
        done(shown);
      };
      waiting.add(waiter);
    });
  };

  return {
    renders,
    until,
    /** What the hook returned last. */
    get stream() {
      return stream;
    },
    get shown() {
      return renders.at(-1);
    },
    unmount: () => root.unmount(),
    mounted: () => until(() => true),
    /** Waits until so many texts are shown and nothing loads. */
    settled: (count) => until((shown) => !shown.isLoading && !shown.isThreadLoading && shown.texts.length === count),
    say: (text, rest) => stream.submit({ messages: [{ type: "human", content: text }] }, rest),
  };
}

/** Asserts that the last text grew word by word, and never shrank or came twice. */
export function assertGrew(renders, index, whole) {
  const texts = renders.map((shown) => shown.texts[index]).filter((text) => text !== undefined);
  const steps = texts.filter((text, n) => text !== texts[n - 1]);
  for (const [n, text] of steps.entries()) {
    assert(whole.startsWith(text), `${text} is no beginning of ${whole}`);
    assert(n === 0 || text.length > steps[n - 1].length, `${text} after ${steps[n - 1]}`);
  }
  assert(steps.length >= 3, `only ${steps.length} steps: ${steps}`);
  assert.equal(steps.at(-1), whole);
}
