// @langchain/langgraph-sdk: every method that has a route of the runs protocol.
import { requests } from "./sdk/client.mjs";
import { makeChecks, tell } from "./harness.mjs";
import "./sdk/assistants.mjs";
import "./sdk/threads.mjs";
import "./sdk/state.mjs";
import "./sdk/runs.mjs";
import "./sdk/streams.mjs";
import "./sdk/stateless.mjs";
import "./sdk/store.mjs";

tell("requests", requests);
await makeChecks();
