"""The chat as its user meets it: in a process of its own, with a small agent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKED = """
from functools import partial
from new_project import __main__, chat
from new_project.acp import ConnectionOptions

chat.spawn_agent = partial(chat.spawn_agent, options=ConnectionOptions(check_sent=True))
__main__.main()
"""
"""The program; a message of it that does not fit the protocol is an error."""


class ChatCase(unittest.TestCase):
    """A test that starts the chat."""

    agent: tuple[str, ...] = (sys.executable, str(HERE / "fake_agent.py"))

    def start(self, *command: str) -> subprocess.Popen[str]:
        chat = subprocess.Popen(
            [sys.executable, "-c", CHECKED, *command],
            env={**os.environ, "PYTHONPATH": str(HERE.parent / "src"), "PYTHONUTF8": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        too_long = threading.Timer(60, chat.kill)
        too_long.start()
        self.addCleanup(chat.communicate)
        self.addCleanup(chat.kill)
        self.addCleanup(too_long.cancel)
        return chat

    def start_with_agent(self) -> subprocess.Popen[str]:
        return self.start(*self.agent)

    def read_until(self, chat: subprocess.Popen[str], text: str) -> str:
        assert chat.stdout is not None
        found = ""
        while text not in found:
            character = chat.stdout.read(1)
            self.assertTrue(character, f"no {text!r} in {found!r}")
            found += character
        return found


class ChatTest(ChatCase):
    def test_the_user_decides_what_is_allowed(self) -> None:
        for number, option in ((1, "allow_once"), (2, "reject_once")):
            with self.subTest(option):
                out, err = self.start_with_agent().communicate(f"Hello\nwhat?\n{number}\n", timeout=30)
                self.assertEqual(err, "")
                self.assertIn("Hello. ", out)
                self.assertIn("Edit notes.txt", out)
                self.assertIn("1  Allow once", out)
                self.assertIn(f"Got {option}.\n[end_turn]", out)

    def test_the_end_of_the_input_allows_nothing(self) -> None:
        out, err = self.start_with_agent().communicate("Hello\n", timeout=30)
        self.assertEqual(err, "")
        self.assertIn("Got None.\n[end_turn]", out)

    def test_the_chat_goes_on_after_an_error(self) -> None:
        out, err = self.start_with_agent().communicate("fail\nHello\n1\n", timeout=30)
        self.assertEqual(err, "")
        self.assertIn("[the agent refuses: Not today (-32603)]", out)
        self.assertIn("[end_turn]", out)

    @unittest.skipIf(sys.platform == "win32", "a process cannot send another one Ctrl-C there")
    def test_ctrl_c_cancels_and_then_ends_the_chat(self) -> None:
        chat = self.start_with_agent()
        assert chat.stdin is not None
        chat.stdin.write("Hello\n")
        chat.stdin.flush()
        self.read_until(chat, "number> ")
        chat.send_signal(signal.SIGINT)
        self.assertIn("Stopped. ", self.read_until(chat, "[cancelled]\n> "))
        chat.send_signal(signal.SIGINT)
        self.assertEqual(chat.wait(30), 0)

    def test_an_agent_that_dies_is_told(self) -> None:
        out, err = self.start(sys.executable, "-c", "raise SystemExit('Bye')").communicate("Hello\n", timeout=30)
        self.assertIn("exit code 1", err)
        self.assertIn("Bye", err)
        self.assertNotIn("Traceback", out + err)

    def test_a_command_is_needed(self) -> None:
        self.assertIn("usage: new-project COMMAND", self.start().communicate(timeout=30)[1])


if __name__ == "__main__":
    unittest.main()
