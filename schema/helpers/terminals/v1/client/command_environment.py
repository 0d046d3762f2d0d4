"""The environment of commands in terminals: the variables of this process that they get."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Final

from ..decision import explains

__all__: list[str] = []

_LOCALE: Final = (
    *("LANG", "LANGUAGE", "LC_ADDRESS", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT"),
    *("LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME", "TZ"),
)
_FOLDERS: Final = (
    *("HOME", "PATH", "TEMP", "TMP", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME"),
    *("XDG_DATA_DIRS", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"),
)
_WINDOWS: Final = (
    *("ALLUSERSPROFILE", "APPDATA", "COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)", "COMMONPROGRAMW6432", "COMSPEC"),
    *("HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "OS", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
    *("PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "PUBLIC", "SYSTEMDRIVE", "SYSTEMROOT"),
    *("USERNAME", "USERPROFILE", "WINDIR"),
)
_USUAL: Final = frozenset((*_LOCALE, *_FOLDERS, *_WINDOWS, "COLORTERM", "LOGNAME", "NO_COLOR", "SHELL", "TERM", "USER"))


@explains
def terminal_environment(*more: str) -> dict[str, str]:
    """The variables of this process that commands get by default, and those with the names in `more`.

    By default they are folders, the language, the terminal and what Windows needs: any other may be a secret.
    """
    names = _USUAL.union(map(_key, more))
    return {name: value for name, value in os.environ.items() if _key(name) in names}


def with_variables(env: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """The environment with the variables of the agent, which replace others of the same name."""
    replaced = {_key(name) for name in variables}
    return {**{name: value for name, value in env.items() if _key(name) not in replaced}, **variables}


def _key(name: str) -> str:
    return name.upper() if sys.platform == "win32" else name
