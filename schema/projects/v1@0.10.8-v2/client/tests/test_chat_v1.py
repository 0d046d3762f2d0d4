"""The same with an agent of version 1 of the protocol; `test_chat` has one of version 2."""

from __future__ import annotations

from . import test_chat


class ChatV1Test(test_chat.ChatTest):
    agent = (*test_chat.ChatTest.agent, "1")
