// useStream of @langchain/langgraph-sdk/react, in three settings of it.
import { makeChecks } from "./harness.mjs";
import "./hook/turns.mjs";
import "./hook/rejoin.mjs";
import "./hook/branches.mjs";

await makeChecks();
