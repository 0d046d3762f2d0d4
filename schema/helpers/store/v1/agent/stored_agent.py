"""The base class of an agent whose sessions are kept in a store, for protocol 1."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TypeAlias

from .._base import UNSET, UnsetType
from ..agent import RemoteClient
from ..codec import encode
from ..dispatch import ConnectionClosed
from ..errors import InternalError
from ..known import StopReason
from ..message import MessageTooLarge
from ..types import (
    CloseSessionRequest,
    CloseSessionResponse,
    ContentBlockText,
    DeleteSessionRequest,
    DeleteSessionResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    LoadSessionRequest,
    LoadSessionResponse,
    NewSessionRequest,
    NewSessionResponse,
    PromptRequest,
    PromptResponse,
    ResumeSessionRequest,
    ResumeSessionResponse,
    SessionConfigOption,
    SessionNotification,
    SessionUpdateSessionInfoUpdate,
    SessionUpdateUserMessageChunk,
    SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse,
)
from .active_session import ActiveSession
from .config_choices import check_choice, keep_choice
from .session_info import title
from .session_openings import SessionOpenings
from .session_store import SessionStore
from .stored_sessions import RecordingClient, StoredSessions, replay, too_large
from .turn_agent import TurnAgent
from .updates import config_options

__all__ = ["OpenSessionRequest", "StoredAgent"]

OpenSessionRequest: TypeAlias = NewSessionRequest | LoadSessionRequest | ResumeSessionRequest
"""A request that opens a session."""


class StoredAgent(TurnAgent):
    """An agent whose sessions can be listed, loaded and resumed, also by another process.

        class MyAgent(StoredAgent):
            store = SqliteStore("sessions.db")

            async def work(self, params: PromptRequest) -> None:
                session = self.session(params.session_id)
                history = session.data = session.data or []
                history.append(...)

    It records the prompts and each `session/update` that is sent by `self.client`, and saves them after `save_seconds`
    at most, and before a prompt is answered; a prompt whose conversation cannot be saved ends in an error. A prompt for
    a session that is not open is refused. The first line of the first prompt is the title, unless you send another.

    What the user may choose for a session, such as its model, is in `config_options`. To add more to a response,
    override the handler, call it with `super()`, and change what it returns.
    """

    store: SessionStore
    save_seconds: float = 1.0
    max_sessions: int = 1_000
    """How many may be open on a connection."""

    def __init__(self, client: RemoteClient) -> None:
        if not hasattr(self, "store"):
            raise TypeError(f'{type(self).__name__} has no store: set one, such as store = SqliteStore("sessions.db")')
        recording = RecordingClient(client, self._record)
        super().__init__(recording)
        self._stored = StoredSessions(
            self.store,
            recording,
            save_seconds=self.save_seconds,
            max_sessions=self.max_sessions,
            has_turns=self.turns.has_turns,
            on_news=self.on_changed_elsewhere,
        )
        self._openings = SessionOpenings(self, self._stored)

    def session(self, session_id: str) -> ActiveSession:
        """A session that is open on this connection. Raises `RequestError` (-32002) for any other."""
        return self._stored.get(session_id)

    async def on_open(self, session: ActiveSession, params: OpenSessionRequest) -> None:
        """Open what belongs to a session, such as its MCP servers: it was begun, or opened again.

        `params` has what the client asks for. If a session is opened again while it is open, `on_close` comes first.
        Calls for one session wait for each other; do not open or close it here.
        """

    async def on_close(self, session_id: str) -> None:
        """Close what `on_open` has opened: the session is closed or deleted, or the connection has ended.

        It is called once after each `on_open` that has not raised.
        """

    def config_options(self, session: ActiveSession) -> Sequence[SessionConfigOption]:
        """What the user may choose for a session, with the values that hold now; nothing unless you override it.

        The responses that open a session have it, and so has the one to a change. If you change a value yourself, send
        the update that the builder `config_options` makes.
        """
        return ()

    async def on_config_option(self, session: ActiveSession, config_id: str, value: str | bool) -> None:
        """Keep what the user has chosen, one of the values that were offered: in `session.data`, a dict, by the id.

        Override it to keep it elsewhere, or to do more. A turn may run; the session is saved before the answer.
        """
        keep_choice(session, config_id, value)

    async def on_changed_elsewhere(self, session: ActiveSession) -> None:
        """Tell the client what another process has changed in a session that is open here too, such as a mode.

        `session` has it already. It sends the title and `config_options`; what is sent here is not recorded. To tell
        more, override it, and call it with `super()`.
        """
        if session.title is not None:
            await self.client.session_update(title(session.id, session.title))
        if options := [*self.config_options(session)]:
            await self.client.session_update(config_options(session.id, options))

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        """Begin a session."""
        active = await self._stored.new(params.cwd, params.additional_directories)
        await self._openings.open(active, params)
        return NewSessionResponse(session_id=active.id, config_options=self._config(active))

    async def session_load(self, params: LoadSessionRequest) -> LoadSessionResponse:
        """Open a session again, and report all of it first. Tool calls that were interrupted are reported as failed."""
        active = await self._stored.open(params.session_id, params.cwd, params.additional_directories)
        await self._openings.open(active, params)
        await replay(self.client, active, end=None if self.turns.has_turns(active.id) else "failed")
        return LoadSessionResponse(config_options=self._config(active))

    async def session_resume(self, params: ResumeSessionRequest) -> ResumeSessionResponse:
        """Open a session again, without a report."""
        active = await self._stored.open(params.session_id, params.cwd, params.additional_directories)
        await self._openings.open(active, params)
        return ResumeSessionResponse(config_options=self._config(active))

    async def session_set_config_option(self, params: SetSessionConfigOptionRequest) -> SetSessionConfigOptionResponse:
        """Check a value against what is offered, leave it to `on_config_option`, and save the session."""
        active, name = self.session(params.session_id), params.config_id
        await active.refresh()
        option = next((each for each in self.config_options(active) if each.id == name), None)
        value: object = getattr(params, "value", None)  # a package that is open takes values of other types
        await self.on_config_option(active, name, check_choice(option, name, value))
        await active.save()
        return SetSessionConfigOptionResponse(config_options=[*self.config_options(active)])

    async def session_list(self, params: ListSessionsRequest) -> ListSessionsResponse:
        """A page of the sessions that have had a prompt, the latest first."""
        page, cursor = await self._stored.page(params.cwd, params.cursor)
        return ListSessionsResponse(sessions=[each.to_info() for each in page], next_cursor=cursor or UNSET)

    async def session_delete(self, params: DeleteSessionRequest) -> DeleteSessionResponse:
        """End the turns of a session, and delete it. Nothing happens if it is unknown."""
        await self.turns.close(params.session_id)
        try:
            await self._stored.delete(params.session_id)
        finally:
            await self._openings.close(params.session_id)
        return DeleteSessionResponse()

    async def session_close(self, params: CloseSessionRequest) -> CloseSessionResponse:
        """End the turns of a session, and save it, or delete one that has never had a prompt."""
        self.session(params.session_id)
        await self.turns.close(params.session_id)
        try:
            await self._stored.close(params.session_id)
        finally:
            await self.turns.close(params.session_id)  # prompts that came meanwhile
            self._stored.forget(params.session_id)
            await self._openings.close(params.session_id)
        return CloseSessionResponse()

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        """Run `work` after the earlier prompts of the session, and save what was said."""
        active = self.session(params.session_id)
        try:
            response = await self.turns.run(params, self._begin(active, params))
        except (Exception, asyncio.CancelledError):  # it is answered with an error
            if active.has_unsaved:
                with suppress(InternalError):  # it is logged
                    await active.save()
            raise
        # if the turn was cancelled, its save may have been, too, or have failed
        if response.stop_reason == "cancelled" or active.has_unsaved:
            await active.save()
        return response

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """Save all sessions. Call it with `super()` if you override it."""
        await super().connection_closed(reason)
        await self._stored.save_all()
        self._stored.active.clear()
        await self._openings.close_all()

    def _config(self, active: ActiveSession) -> list[SessionConfigOption] | UnsetType:
        return [*self.config_options(active)] or UNSET

    async def _begin(self, active: ActiveSession, params: PromptRequest) -> StopReason | PromptResponse | None:
        await active.refresh()  # a mode that another process has set holds for this turn
        active.is_prompted = True
        try:
            await active.record(*(encode(SessionUpdateUserMessageChunk(content=block)) for block in params.prompt))
        except MessageTooLarge as error:
            raise too_large(error) from None
        texts = [block.text for block in params.prompt if isinstance(block, ContentBlockText)]
        try:
            if active.name_after("\n".join(texts)):
                await self.client.session_update(title(active.id, active.title))
            return await self.work(params)
        finally:
            await active.save()  # before the next turn begins

    async def _record(self, params: SessionNotification) -> None:
        update = params.update
        if (active := self._stored.active.get(params.session_id)) is not None:
            await active.record(encode(update))
            if isinstance(update, SessionUpdateSessionInfoUpdate) and update.title is not UNSET:
                active.title = update.title
