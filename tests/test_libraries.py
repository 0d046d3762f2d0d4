"""Instances of a package in JSON libraries and converters: the form on the wire by their hooks, or an error."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import PurePath
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.model import Options
from acpgen.roles import RoleChoice
from tests.needs import need
from tests.runtime_support import V1, V2
from tests.support import Packages
from tests.test_dataclasses import instances

HOOKS = {"orjson": "default", "msgspec.json": "enc_hook", "json": "default"}
"""The libraries that ask a hook for what they do not know, and its argument."""


@dataclasses.dataclass
class Mine:
    """Of a user."""

    value: Any


@pytest.fixture(params=[1, 2])
def acp(request: pytest.FixtureRequest, packages: Packages) -> ModuleType:
    return packages(V1 if request.param == 1 else V2, roles=RoleChoice.BOTH.roles)


@pytest.fixture(params=HOOKS)
def write(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Writes a value with a library, and its hook if one is given; returns the value that JSON has then."""
    name = request.param
    if name not in sys.stdlib_module_names:
        need(name.partition(".")[0])
    module = importlib.import_module(name)
    dump = getattr(module, "dumps", None) or module.encode

    def write(value: Any, hook: Callable[[Any], Any] | None = None) -> Any:
        return json.loads(dump(value, **({HOOKS[name]: hook} if hook else {})))

    return write


def complete(acp: ModuleType) -> list[Any]:
    """Instances in which no property is absent: no `UNSET` gives them away."""
    found = [acp.Implementation(name="n", title="t", version="1", meta={}), acp.TextResourceContents(text="t", uri="u")]
    found[1].mime_type, found[1].meta = None, None
    return found


def test_without_its_hook_a_library_raises(acp: ModuleType, write: Callable[..., Any]) -> None:
    for value in (*complete(acp), acp.Implementation(name="n", version="1")):
        for whole in (value, [value], {"a": value}):
            with pytest.raises(TypeError, match=type(value).__name__):
                write(whole)


@pytest.mark.parametrize("library", ["orjson", "msgspec.json"])
def test_also_in_a_dataclass_of_the_users(acp: ModuleType, library: str) -> None:
    need(library.partition(".")[0])
    module = importlib.import_module(library)
    dump = getattr(module, "dumps", None) or module.encode
    for value in complete(acp):
        with pytest.raises(TypeError, match=type(value).__name__):
            dump(Mine([value]))
        assert json.loads(dump(Mine([value]), **{HOOKS[library]: acp.encode})) == {"value": [acp.encode(value)]}


@pytest.mark.parametrize("protocol", [1, 2])
def test_every_class_is_written_by_the_hook(packages: Packages, protocol: int, write: Callable[..., Any]) -> None:
    count = 0
    for _, value, _ in instances(packages, protocol):
        package = importlib.import_module(type(value).__module__.rpartition(".")[0])
        assert write({"a": [value]}, package.encode) == {"a": [package.encode(value)]}
        count += 1
    assert count > 200


def test_what_is_derived_from_a_class_is_written_as_that_class(acp: ModuleType, write: Callable[..., Any]) -> None:
    class Plain(acp.Implementation):  # type: ignore[misc, name-defined]
        """It adds nothing."""

    class More(acp.Implementation):  # type: ignore[misc, name-defined]
        more: int = 1

    @dataclasses.dataclass
    class Decorated(acp.Implementation):  # type: ignore[misc, name-defined]
        more: int = 1

    for kind in (Plain, More, Decorated):
        value = kind(name="n", version="1")
        assert write(value, acp.encode) == {"name": "n", "version": "1"}
        with pytest.raises(TypeError):
            write(value)


@dataclasses.dataclass
class Owned:
    owner: str = "me"


@pytest.mark.parametrize("library", ["orjson", "msgspec.json"])
def test_a_class_with_a_dataclass_before_it_is_written_as_any_dataclass(acp: ModuleType, library: str) -> None:
    """The fields are those of both, and what is absent is no text. orjson would crash if it found them and got none."""
    need(library.partition(".")[0])
    module = importlib.import_module(library)
    dump = getattr(module, "dumps", None) or module.encode

    class Both(Owned, acp.Implementation):  # type: ignore[misc, name-defined]
        more: int = 2

    value = Both(name="n", version="1")
    assert {field.name for field in dataclasses.fields(value)} == {field.name for field in dataclasses.fields(Both)}
    assert {"owner", "name", "more"} <= {field.name for field in dataclasses.fields(value)}
    with pytest.raises(TypeError):
        dump(value)
    assert json.loads(dump(acp.Struct())) == {}  # the base of all has it, too


def test_what_a_class_keeps_is_written(packages: Packages, write: Callable[..., Any]) -> None:
    acp = packages(V1, roles=RoleChoice.BOTH.roles, options=Options(keep_unknown=True))
    raw = {"name": "n", "version": "1", "new": [1.5]}
    assert write(acp.decode(acp.Implementation, raw), acp.encode) == raw


def test_a_hook_that_names_what_it_does_not_know(acp: ModuleType, write: Callable[..., Any]) -> None:
    assert write([acp.Implementation(name="n", version="1")], acp.codec.by_class) == [{"name": "n", "version": "1"}]
    with pytest.raises(TypeError) as error:
        write([PurePath("/")], acp.codec.by_class)
    assert "Path" in f"{error.value} {error.value.__cause__}"


def test_the_value_of_a_union_that_keeps_what_it_does_not_know(packages: Packages, write: Callable[..., Any]) -> None:
    acp = packages(V1, roles=RoleChoice.BOTH.roles, options=Options(open=True))
    raw = {"sessionUpdate": "new_in_a_later_release", "x": {"y": None}}
    assert write([acp.decode(acp.SessionUpdate, raw)], acp.encode) == [raw]


def test_msgspec_asks_its_hook_for_a_class_that_it_reads(acp: ModuleType) -> None:
    need("msgspec")
    import msgspec

    raw = {"name": "n", "version": "1", "title": None}
    expected = acp.Implementation(name="n", version="1", title=None)
    assert msgspec.convert([raw], list[acp.Implementation], dec_hook=acp.decode) == [expected]
    assert msgspec.json.decode(json.dumps(raw), type=acp.Implementation, dec_hook=acp.decode) == expected
    with pytest.raises(msgspec.ValidationError, match=r"\$\.version: expected a value, found nothing"):
        msgspec.convert([{"name": "n"}], list[acp.Implementation], dec_hook=acp.decode)
    for kind in {type(value) for value in complete(acp)}:
        with pytest.raises(msgspec.ValidationError):  # without it
            msgspec.convert({"name": "n", "version": "1", "text": "t", "uri": "u"}, kind)


def test_cattrs_takes_no_class_by_its_names_in_python(acp: ModuleType) -> None:
    """docs/web.md says what to register."""
    need("cattrs")
    from cattrs import StructureHandlerNotFoundError, structure, unstructure

    for value in (*complete(acp), acp.Implementation(name="n", version="1")):
        written = unstructure(Mine([value]))
        with pytest.raises(TypeError, match=type(value).__name__):
            json.dumps(written)
        with pytest.raises(StructureHandlerNotFoundError, match=type(value).__name__):
            structure({"name": "n", "version": "1", "text": "t", "uri": "u"}, type(value))
