"""Serve an application until SIGTERM: python serve.py FOLDER-OF-THE-PACKAGES MODULE SERVER

Prints the port, which the system has chosen, on 127.0.0.1; the server may need some more time to listen on it.
"""

import asyncio
import importlib
import socket
import sys
from pathlib import Path

HERE = str(Path(__file__).parent)
HOST = "127.0.0.1"


def free_port():
    with socket.socket() as found:
        found.bind((HOST, 0))
        return found.getsockname()[1]


def application(module):
    sys.path.insert(0, HERE)
    return importlib.import_module(module).application


def uvicorn(module, port):
    import uvicorn

    uvicorn.run(application(module), host=HOST, port=port, log_level="error")


def hypercorn(module, port):
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"{HOST}:{port}"]
    config.loglevel = "ERROR"
    asyncio.run(serve(application(module), config))


def granian(module, port):
    from granian import Granian
    from granian.constants import HTTPModes, Interfaces

    sys.path.insert(0, HERE)  # its worker process gets a copy
    target = f"{module}:application"
    Granian(target, address=HOST, port=port, interface=Interfaces.ASGI, http=HTTPModes.http2, log_enabled=False).serve()


if __name__ == "__main__":
    _, _, module, server = sys.argv
    port = free_port()
    print(port, flush=True)
    {"uvicorn": uvicorn, "hypercorn": hypercorn, "granian": granian}[server](module, port)
