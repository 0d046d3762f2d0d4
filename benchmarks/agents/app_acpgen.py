"""The agent on a generated package, as an ASGI application. `sys.argv[1]` is the folder of the packages."""

from agent_acpgen import Talker
from demo.asgi import asgi_app

application = asgi_app(Talker)
