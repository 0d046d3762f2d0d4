"""What the chat shows and does for the agent: diffs, commands, a login, and Ctrl-C twice."""

from __future__ import annotations

import signal
import sys
import unittest

from . import test_chat


class PartsTest(test_chat.ChatCase):
    def test_a_diff_is_shown(self) -> None:
        out, err = self.start_with_agent().communicate("edit\n", timeout=30)
        self.assertEqual(err, "")
        self.assertIn("* Edit: completed\n--- /notes.txt\n+++ /notes.txt\n@@ -1 +1 @@\n-colour\n+color\n", out)

    def test_a_command_is_run(self) -> None:
        out, err = self.start_with_agent().communicate("run\n", timeout=30)
        self.assertEqual(err, "")
        self.assertIn("from a command\n", out)
        self.assertIn("[end_turn]", out)

    def test_the_user_logs_in(self) -> None:
        out, err = self.start(*self.agent, "login").communicate("1\nHello\n1\n", timeout=30)
        self.assertEqual(err, "")
        self.assertIn("1  The keyring", out)
        self.assertIn("Got allow_once.\n[end_turn]", out)

    def test_without_a_login_the_chat_ends(self) -> None:
        chat = self.start(*self.agent, "login")
        _, err = chat.communicate("", timeout=30)
        self.assertNotIn("Traceback", err)
        self.assertNotEqual(chat.returncode, 0)

    @unittest.skipIf(sys.platform == "win32", "a process cannot send another one Ctrl-C there")
    def test_a_second_ctrl_c_leaves_an_agent_that_does_not_stop(self) -> None:
        chat = self.start_with_agent()
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
