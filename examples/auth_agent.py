r"""An agent to log in to, to log out of, and to ask whether it has credentials, by two drafts of the protocol.

What it imports is built by this command, given in this folder:

    acpgen build --role agent --release 0.10.8 --extension logout@2026-02-02 --extension auth-state@2026-03-07 \
        --out acp_auth

Both capabilities are advertised because the methods are here.
"""

from __future__ import annotations

from uuid import uuid4

from acp_auth import (
    PROTOCOL_VERSION,
    Agent,
    AuthenticateRequest,
    AuthenticateResponse,
    AuthenticationRequiredError,
    AuthMethod,
    AuthMethodState,
    GetAuthStateRequest,
    GetAuthStateResponse,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    InvalidParamsError,
    LogoutRequest,
    LogoutResponse,
    NewSessionRequest,
    NewSessionResponse,
    RemoteClient,
    advertise,
    run_agent,
)

KEYRING = AuthMethod(id="keyring", name="The keyring of this system")


class GuardedAgent(Agent):
    """Opens sessions only for clients that have logged in."""

    def __init__(self, client: RemoteClient) -> None:
        super().__init__(client)
        self._has_credentials = False

    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        message = InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="guarded", version="1"),
            auth_methods=[KEYRING],
        )
        return advertise(self, message)

    async def authenticate(self, params: AuthenticateRequest) -> AuthenticateResponse:
        if params.method_id != KEYRING.id:
            raise InvalidParamsError(f"no method {params.method_id!r}")
        self._has_credentials = True
        return AuthenticateResponse()

    async def logout(self, params: LogoutRequest) -> LogoutResponse:
        self._has_credentials = False
        return LogoutResponse()

    async def get_auth_state(self, params: GetAuthStateRequest) -> GetAuthStateResponse:
        state = AuthMethodState(auth_method_id=KEYRING.id, authenticated=self._has_credentials)
        return GetAuthStateResponse(authenticated=self._has_credentials, auth_methods=[state])

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        if not self._has_credentials:
            raise AuthenticationRequiredError
        return NewSessionResponse(session_id=uuid4().hex)


if __name__ == "__main__":
    run_agent(GuardedAgent)
