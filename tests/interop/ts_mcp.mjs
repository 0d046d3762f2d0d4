// A client and an agent of the TypeScript SDK that speak MCP through the connection:
// node ts_mcp.mjs agent VERSION SDK-FOLDER
// node ts_mcp.mjs client VERSION SDK-FOLDER COMMAND OF THE AGENT ...
// node ts_mcp.mjs remote_client VERSION SDK-FOLDER TRANSPORT URL
// The agent is driven by `_mcp` requests. The client sends one prompt, and writes what it gets as lines of JSON.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [role, version, folder, ...command] = process.argv.slice(2);
const resolve = createRequire(pathToFileURL(`${folder}/here.js`)).resolve;
const load = (entry) => import(pathToFileURL(resolve(entry)));
const acp = await load(version === "1" ? "@agentclientprotocol/sdk/unstable" : "@agentclientprotocol/sdk/experimental/v2/unstable");
const { ndJsonStream, McpOverAcpCaller, McpOverAcpProvider, RequestError } = acp;

function hello() {
  if (version === "1") return { protocolVersion: 1, agentCapabilities: { mcpCapabilities: { acp: true } } };
  return { protocolVersion: 2, info: { name: "peer", version: "1" }, capabilities: { session: { mcp: { acp: {} } } } };
}

async function call(caller, client, { serverId, method, params, cancelAfter, requestId }) {
  const notifications = [];
  const controller = new AbortController();
  const options = {
    requestId,
    signal: controller.signal,
    onNotification(notification) {
      notifications.push(notification);
      if (notifications.length === cancelAfter) controller.abort();
    },
  };
  try {
    return { outcome: await caller.request(client, serverId, method, params, options), notifications };
  } catch (error) {
    if (!(error instanceof RequestError)) return { failure: String(error), notifications };
    return { error: { code: error.code, message: error.message, data: error.data }, notifications };
  }
}

async function server() {
  // by its file: the class has to be the one that the SDK imports, and `require` would resolve to another
  const { McpServer } = await import(pathToFileURL(`${folder}/node_modules/@modelcontextprotocol/server/dist/index.mjs`));
  const { fromMcpServer } = await load("@agentclientprotocol/sdk/experimental/mcp-server");
  const z = await load("zod/v4");
  const adapter = fromMcpServer(() => {
    const server = new McpServer({ name: "shop", version: "1.0.0" }, { capabilities: { tools: { listChanged: true } } });
    const say = (text) => ({ content: [{ type: "text", text }] });
    server.registerTool("echo", { inputSchema: z.object({ text: z.string() }) }, async ({ text }) => say(text));
    server.registerTool("count", { inputSchema: z.object({ to: z.number() }) }, async ({ to }, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      for (let progress = 1; progress <= to; progress++) {
        await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: to } });
      }
      return say("counted");
    });
    server.registerTool("wait", { inputSchema: z.object({}) }, async (_, { mcpReq }) => {
      tell({ tool: "wait" });
      await new Promise((done) => mcpReq.signal.addEventListener("abort", done));
      tell({ tool: "cancelled" });
      return say("never read");
    });
    server.registerTool("broken", { inputSchema: z.object({}) }, async () => {
      throw new Error("broken on purpose");
    });
    server.registerResource("one", "note://one", {}, async (uri) => ({ contents: [{ uri: uri.href, text: "a note" }] }));
    server.registerPrompt("hello", { argsSchema: z.object({ name: z.string() }) }, ({ name }) => ({
      messages: [{ role: "user", content: { type: "text", text: `Say hello to ${name}` } }],
    }));
    return server;
  }, { onerror: console.error });
  return adapter;
}

function tell(message) {
  process.stdout.write(JSON.stringify(message) + "\n");
}

async function play(connect, atEnd) {
  const provider = new McpOverAcpProvider();
  const app = acp.client({ name: "peer" });
  app.onRequest("mcp/message", (context) => provider.handleRequest(context));
  app.onNotification("session/update", ({ params }) => tell(params.update));
  const adapter = await server();
  let registration;
  app.onRequest("*", async ({ method }) => {
    if (method === "_publish") adapter.notify.toolsChanged();
    if (method === "_dispose") await registration.dispose();
    return {};
  });
  const peer = (await connect(app)).agent;
  const info = { info: { name: "peer", version: "1" }, capabilities: {} };
  await peer.request("initialize", { protocolVersion: Number(version), ...(version === "1" ? {} : info) });
  registration = provider.registerServer(peer, { name: "shop", handler: adapter.handler });
  const mcpServers = [registration.declaration];
  const { sessionId } = await peer.request("session/new", { cwd: "/", mcpServers });
  tell({ response: await peer.request("_play", { sessionId }) });
  atEnd();
}

const roles = {
  agent() {
    const caller = new McpOverAcpCaller();
    const app = acp.agent({ name: "peer" });
    let servers;
    app.onRequest("initialize", hello);
    app.onRequest("session/new", ({ params }) => ((servers = params.mcpServers), { sessionId: "session-1" }));
    app.onRequest("*", ({ method, params, client }) => (method === "_mcp" ? call(caller, client, params) : { servers }));
    app.onNotification("mcp/message", caller.handleNotification);
    app.connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
  },

  client() {
    const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
    child.on("exit", () => process.exit());
    const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
    return play((app) => app.connect(stream), () => child.stdin.end());
  },

  async remote_client() {
    const { open } = await import("./remote_ts.mjs");
    let connection;
    const connect = async (app) => (connection = app.connect(await open(load, ...command)));
    await play(connect, () => {
      connection.close();
      setTimeout(process.exit, 200); // for the last request
    });
  },
};

await roles[role]();
