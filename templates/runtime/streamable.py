"""The state of Streamable HTTP: connections, their streams, and the sessions on them."""
