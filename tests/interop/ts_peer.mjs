// The TypeScript SDK's side of a pair: node ts_peer.mjs ROLE VERSIONS SDK-FOLDER ANSWERS [COMMAND OF THE AGENT ...]
// On the network: node ts_peer.mjs server VERSIONS SDK-FOLDER ANSWERS TRANSPORT, which writes {port} to stdout, and
// node ts_peer.mjs remote_client VERSIONS SDK-FOLDER ANSWERS TRANSPORT URL.
// The versions are 1, 2, or 1,2 for an agent of both.
// An agent is driven by `_interop/...` requests, a client by lines of JSON on stdin: {id, order, params}.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const CONTROL = "_interop/";
const NOTIFICATIONS = new Set(["session/cancel", "session/update", "elicitation/complete"]);
const ENTRY = { 1: "@agentclientprotocol/sdk", 2: "@agentclientprotocol/sdk/experimental/v2" };

const [role, versions, folder, answersFile, ...command] = process.argv.slice(2);
const resolve = createRequire(pathToFileURL(`${folder}/here.js`)).resolve;
const load = (entry) => import(pathToFileURL(resolve(entry)));
const modules = await Promise.all(versions.split(",").map((version) => load(ENTRY[version])));
const { ndJsonStream, RequestError, agentProtocolRouter } = modules.at(-1);

const answers = JSON.parse(readFileSync(answersFile, "utf8"));
const log = [];
const calls = new Map();
let waiting = [];
let peer;

function note(entry) {
  log.push(entry);
  waiting = waiting.filter((check) => !check());
}

function until(condition) {
  return new Promise((done) => {
    const check = () => condition() && (done(), true);
    if (!check()) waiting.push(check);
  });
}

async function take(method, params, signal) {
  note({ method, params });
  const plan = answers[method] ?? {};
  for (const message of plan.first ?? []) {
    note({ asked: message.method, got: await say(message) });
  }
  if (plan.raise) throw new Error(plan.raise);
  if (plan.error) throw new RequestError(plan.error.code, plan.error.message, plan.error.data);
  if (plan.hold) await hold(method, signal);
  return plan.result;
}

function hold(method, signal) {
  const cancelled = new Promise((_, fail) => {
    signal.addEventListener("abort", () => {
      note({ cancelled: method });
      fail(new DOMException("cancelled", "AbortError"));
    });
  });
  return Promise.race([until(() => log.some((entry) => entry.method === "session/cancel")), cancelled]);
}

const orders = {
  reset(params) {
    Object.assign(answers, params.answers);
    log.length = 0;
    return {};
  },
  async seen(params) {
    await until(() => log.length >= params.count);
    return { log };
  },
  say,
  abort(params) {
    calls.get(params.key).abort();
    return {};
  },
};

async function say({ method, params, key, notify }) {
  try {
    if (notify || NOTIFICATIONS.has(method)) {
      await peer.notify(method, params);
      return {};
    }
    const controller = new AbortController();
    calls.set(key, controller);
    return { result: await peer.request(method, params, { cancellationSignal: controller.signal }) };
  } catch (error) {
    if (error instanceof RequestError) {
      return { error: { code: error.code, message: error.message, data: error.data } };
    }
    return { failure: String(error) };
  }
}

function build(acp) {
  const isAgent = role === "agent" || role === "server";
  const app = isAgent ? acp.agent({ name: "peer" }) : acp.client({ name: "peer" });
  for (const method of Object.values(isAgent ? acp.AGENT_METHODS : acp.CLIENT_METHODS)) {
    if (NOTIFICATIONS.has(method)) app.onNotification(method, ({ params, signal }) => take(method, params, signal));
    else app.onRequest(method, ({ params, signal }) => take(method, params, signal));
  }
  app.onRequest("*", ({ method, params, signal }) => {
    if (method.startsWith(CONTROL)) return orders[method.slice(CONTROL.length)](params);
    if (!method.startsWith("_")) throw RequestError.methodNotFound(method);
    return take(method, params, signal);
  });
  app.onNotification("*", ({ method, params, signal }) => {
    if (method.startsWith("_")) return take(method, params, signal);
  });
  return app;
}

function tell(message) {
  process.stdout.write(JSON.stringify(message) + "\n");
}

function agentApp() {
  const apps = modules.map((acp) => build(acp).onConnect(({ client }) => (peer = client)));
  return apps.length === 1 ? apps[0] : agentProtocolRouter().withV1(apps[0]).withV2(apps[1]);
}

function obey(atEnd) {
  const lines = createInterface({ input: process.stdin });
  lines.on("line", async (line) => {
    const { id, order, params } = JSON.parse(line);
    tell({ id, ...(await orders[order](params)) });
  });
  lines.on("close", atEnd);
}

const roles = {
  agent() {
    agentApp().connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
  },

  client() {
    const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
    peer = build(modules[0]).connect(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout))).agent;
    obey(() => child.stdin.end());
    child.on("exit", (code, signal) => {
      tell({ exit: code ?? signal });
      process.exit();
    });
  },

  async server() {
    const { serve } = await import("./remote_ts.mjs");
    const requests = [];
    orders.requests = () => ({ requests });
    tell({ port: await serve(load, agentApp, requests, ...command) });
    process.stdin.resume().on("end", () => process.exit());
  },

  async remote_client() {
    const { open } = await import("./remote_ts.mjs");
    const connection = build(modules[0]).connect(await open(load, ...command));
    peer = connection.agent;
    obey(() => {
      connection.close();
      setTimeout(process.exit, 200); // for the last request
    });
  },
};

await roles[role]();
