"""What the chat does with an agent of either version: commands, a login, and Ctrl-C twice."""

from __future__ import annotations

import signal
import sys
import unittest

from . import test_chat


class PartsTest(test_chat.ChatCase):
    def test_a_command_is_run_in_version_1(self) -> None:
        out, err = self.start(*self.agent, "1").communicate("run\n", timeout=30)
        self.assertEqual(err, "")
        self.assertIn("from a command\n", out)
        self.assertIn("[end_turn]", out)

    def test_the_user_logs_in(self) -> None:
        out, err = self.start(*self.agent, "1", "login").communicate("1\nHello\n1\n", timeout=30)
        self.assertEqual(err, "")
        self.assertIn("1  The keyring", out)
        self.assertIn("Got allow_once.\n[end_turn]", out)

    def test_without_a_login_the_chat_ends(self) -> None:
        chat = self.start(*self.agent, "1", "login")
        _, err = chat.communicate("", timeout=30)
        self.assertNotIn("Traceback", err)
        self.assertNotEqual(chat.returncode, 0)

    @unittest.skipIf(sys.platform == "win32", "a process cannot send another one Ctrl-C there")
    def test_a_second_ctrl_c_leaves_an_agent_that_does_not_stop(self) -> None:
        for version in ("1", "2"):
            with self.subTest(version):
                chat = self.start(*self.agent, version)
                assert chat.stdin is not None
                chat.stdin.write("hang\n")
                chat.stdin.flush()
                self.read_until(chat, "number> ")
                chat.send_signal(signal.SIGINT)
                self.read_until(chat, "Stopped. ")
                chat.send_signal(signal.SIGINT)
                self.assertEqual(chat.wait(30), 130)
                self.assertNotIn("Traceback", chat.stderr.read() if chat.stderr else "")


if __name__ == "__main__":
    unittest.main()
