// The client of all checks; it notes each request. Without retries: they would hide what fails once.
import { Client } from "@langchain/langgraph-sdk";
import { url } from "../harness.mjs";

export const requests = [];

export const client = new Client({
  apiUrl: url,
  callerOptions: { maxRetries: 0 },
  onRequest: (target, init) => {
    requests.push(`${init.method ?? "GET"} ${target.pathname}`);
    return init;
  },
});

/** Makes a thread; returns its id. */
export const newThread = async (options) => (await client.threads.create(options)).thread_id;
/** Makes a thread on which the graph has run once; returns its id. */
export async function usedThread(graph = "steps", input = { trail: ["in"] }) {
  const thread = await newThread();
  await client.runs.wait(thread, graph, { input });
  return thread;
}
