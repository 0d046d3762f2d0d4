"""What the server and the client's library take by themselves: each message comes back; no JSON is read, no types."""

import asyncio


async def echo_frames(receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    while (event := await receive())["type"] != "websocket.disconnect":
        await send({"type": "websocket.send", "text": event["text"]})


class Streamable:
    """A POST puts its body on the stream of the last GET."""

    def __init__(self):
        self.bodies = asyncio.Queue()

    async def get(self, send):
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
        self.bodies = asyncio.Queue()
        while True:
            event = b"data: " + await self.bodies.get() + b"\n\n"
            await send({"type": "http.response.body", "body": event, "more_body": True})

    async def post(self, receive, send):
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        self.bodies.put_nowait(body)
        await send({"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


streamable = Streamable()


async def application(scope, receive, send):
    match scope["type"], scope.get("method"):
        case "websocket", _:
            await echo_frames(receive, send)
        case "http", "GET":
            await streamable.get(send)
        case "http", _:
            await streamable.post(receive, send)
        case _:
            while (kind := (await receive())["type"]) != "lifespan.shutdown":
                await send({"type": f"{kind}.complete"})
            await send({"type": "lifespan.shutdown.complete"})
