// The same agent on the official TypeScript SDK: node agent_typescript_sdk.mjs FOLDER-OF-THE-SDK

import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const resolve = createRequire(pathToFileURL(`${process.argv[2]}/here.js`)).resolve;
const acp = await import(pathToFileURL(resolve("@agentclientprotocol/sdk")));
const { agent, client } = acp.methods;

let peer;

async function prompt({ params }) {
  const [label, count, turns] = params.prompt[0].text.split(" ");
  for (let at = 0; at < Number(count); at++) {
    if (turns) await new Promise(setImmediate);
    const text = `${label}: piece ${at} of what the agent has to say about it. `;
    const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
    await peer.notify(client.session.update, { sessionId: params.sessionId, update });
  }
  return { stopReason: "end_turn" };
}

peer = acp
  .agent({ name: "talker" })
  .onRequest(agent.initialize, ({ params }) => ({ protocolVersion: params.protocolVersion }))
  .onRequest(agent.session.new, () => ({ sessionId: "session-1" }))
  .onRequest(agent.session.prompt, prompt)
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin))).client;
