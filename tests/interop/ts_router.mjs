// Answers of the TypeScript SDK's router of both versions: node ts_router.mjs SDK-FOLDER
// Reads an array of messages from stdin, the first of a connection each, and writes the array of answers.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const resolve = createRequire(pathToFileURL(`${process.argv[2]}/here.js`)).resolve;
const load = (entry) => import(pathToFileURL(resolve(entry)));
const one = await load("@agentclientprotocol/sdk");
const two = await load("@agentclientprotocol/sdk/experimental/v2");

function answer(message) {
  const first = one.agent({ name: "one" }).onRequest("initialize", () => ({ protocolVersion: 1 }));
  const info = { name: "two", version: "1" };
  const second = two.agent({ name: "two" }).onRequest("initialize", () => ({ protocolVersion: 2, info, capabilities: {} }));
  return new Promise((done) => {
    const readable = new ReadableStream({ start: (controller) => controller.enqueue(message) });
    const writable = new WritableStream({ write: done });
    two.agentProtocolRouter().withV1(first).withV2(second).connect({ readable, writable });
  });
}

const answers = await Promise.all(JSON.parse(readFileSync(0, "utf8")).map(answer));
process.stdout.write(JSON.stringify(answers));
