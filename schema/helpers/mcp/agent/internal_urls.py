"""Tells URLs of this machine and of private networks by their text, without asking any server for a name."""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Final
from urllib.parse import urlsplit

__all__: list[str] = []

_HOST: Final = re.compile(r"[0-9a-z_.-]+|\[[0-9a-f:.]+\]")
_INTERNAL_ENDS: Final = (
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "arpa",
)
"""The last labels of names that no public server has."""
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


def is_internal(url: str) -> bool:
    """True unless a URL is surely that of a public server, as far as its text tells.

    So it is for what libraries read in different ways: other characters than printable ASCII, or two signs "@".
    """
    try:
        parts = urlsplit(url)
        name = parts.hostname or ""
        parts.port  # raises for one that is no number
    except ValueError:
        return True
    is_plain = url.isascii() and url.isprintable() and not {*url} & {" ", "\\"} and parts.netloc.count("@") < 2
    host = parts.netloc.rpartition("@")[2].lower()
    if not is_plain or parts.scheme not in ("http", "https") or not _HOST.match(host):
        return True
    return _is_internal_name(name.rstrip("."))


def _is_internal_name(name: str) -> bool:
    if (address := _address(name)) is not None:
        return any(not each.is_global or each.is_multicast for each in (address, *_within(address)))
    # a label of a public name is no number, and it has two
    return not _HOST.fullmatch(name) or "." not in name or name.rpartition(".")[2] in _INTERNAL_ENDS


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is, also in a form that only old functions of C read: 127.1, 0x7f000001, 017700000001."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(name))
    except (OSError, UnicodeError):
        return None


def _within(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """The addresses of version 4 to which one of version 6 leads."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64 or not int(address) >> 32:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [each for each in found if each is not None]
