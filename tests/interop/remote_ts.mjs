// The TypeScript SDK on the network: its server on node:http or node:http2, and its streams.
// `load` imports from where the SDK is; a transport is http1, http2 or websocket.

import { createServer } from "node:http";
import { connect, createServer as createHttp2Server } from "node:http2";
import { Readable } from "node:stream";

const COOKIE = "affinity=a1";

// Serves over HTTP of one version, and over WebSocket if that is 1: the port.
// Adds to `requests`: the method or "websocket", the version of HTTP, and the cookies, of each request.
export async function serve(load, createAgent, requests, transport) {
  const { AcpServer } = await load("@agentclientprotocol/sdk/experimental/server");
  const { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } = await load(
    "@agentclientprotocol/sdk/experimental/node",
  );
  const server = new AcpServer({ createAgent });
  const handle = createNodeHttpHandler(server);
  const note = (kind, { httpVersion, headers }) => requests.push([kind, httpVersion, headers.cookie ?? ""]);
  const host = (transport === "http2" ? createHttp2Server : createServer)((request, response) => {
    note(request.method, request);
    response.setHeader("set-cookie", COOKIE);
    handle(request, response);
  });
  if (transport !== "http2") {
    const { WebSocketServer } = (await load("ws")).default;
    const sockets = new WebSocketServer({ noServer: true });
    sockets.on("headers", (headers) => headers.push(`Set-Cookie: ${COOKIE}`));
    const upgrade = createNodeWebSocketUpgradeHandler(server, sockets);
    host.on("upgrade", (request, socket, head) => {
      note("websocket", request);
      upgrade(request, socket, head);
    });
  }
  await new Promise((done) => host.listen(0, "127.0.0.1", done));
  return host.address().port;
}

// A stream to the agent at `url`.
export async function open(load, transport, url) {
  if (transport === "websocket") {
    const { createWebSocketStream } = await load("@agentclientprotocol/sdk/experimental/ws-client");
    const { WebSocket } = (await load("ws")).default;
    return createWebSocketStream(url.replace("http", "ws"), { WebSocket });
  }
  const { createHttpStream } = await load("@agentclientprotocol/sdk/experimental/http-client");
  return createHttpStream(url, transport === "http2" ? { fetch: fetchOverHttp2(url) } : {});
}

// As much of `fetch` as the SDK uses, over HTTP/2 without TLS, which that of node does not speak.
function fetchOverHttp2(url) {
  const session = connect(new URL(url).origin);
  return (_, { method, headers, body, signal }) =>
    new Promise((done, fail) => {
      const path = new URL(url).pathname;
      const stream = session.request({ ...Object.fromEntries(headers), ":method": method, ":path": path });
      signal?.addEventListener("abort", () => stream.destroy());
      stream.on("error", fail);
      stream.on("response", ({ ":status": status, ...fields }) => {
        const found = Object.entries(fields).filter(([name]) => !name.startsWith(":"));
        const flat = found.flatMap(([name, values]) => [values].flat().map((value) => [name, value]));
        done(new Response(Readable.toWeb(stream), { status, headers: flat }));
      });
      stream.end(body);
    });
}
