"""The same application on the official Python SDK."""

from acp.http.asgi import create_asgi_app
from agent_python_sdk import Talker

application = create_asgi_app(lambda conn: Talker())
