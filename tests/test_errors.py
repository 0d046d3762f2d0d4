"""Errors: from a handler to the wire, and from the wire to the caller."""

from __future__ import annotations

import copy
import json
import pickle
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Options
from tests.support import Packages, schema_of

pytestmark = pytest.mark.every_python

CODES = {
    -32700: ("ParseError", "Parse error"),
    -32600: ("InvalidRequestError", "Invalid request"),
    -32601: ("MethodNotFoundError", "Method not found"),
    -32602: ("InvalidParamsError", "Invalid params"),
    -32603: ("InternalError", "Internal error"),
    -32800: ("RequestCancelledError", "Request cancelled"),
    -32000: ("AuthenticationRequiredError", "Authentication required"),
    -32002: ("ResourceNotFoundError", "Resource not found"),
}


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(SchemaChoice(release="2026-11-02"))


@pytest.fixture(scope="module")
def bare(packages: Packages) -> ModuleType:
    """A package of a schema that does not describe errors."""
    return packages.of(schema_of(Empty={"type": "object", "properties": {}}))


def test_the_codes_of_the_schema_are_known(acp: ModuleType) -> None:
    assert {code: kind.__name__ for code, kind in acp.errors.ERROR_CLASSES.items()} == {
        code: name for code, (name, _) in CODES.items()
    }


def test_the_codes_of_version_two(packages: Packages) -> None:
    acp = packages(SchemaChoice(protocol=2, release="2026-11-02"))
    assert acp.errors.ERROR_CLASSES.keys() == CODES.keys() | {-32022}
    assert acp.UnsupportedProtocolVersionError().to_json() == {
        "code": -32022,
        "message": "Unsupported protocol version",
    }


def test_the_codes_of_json_rpc_where_the_schema_has_none(bare: ModuleType) -> None:
    assert sorted(bare.errors.ERROR_CLASSES) == [-32700, -32603, -32602, -32601, -32600]


@pytest.mark.parametrize(("code", "name", "title"), [(code, *names) for code, names in CODES.items()])
def test_an_error_of_each_code(acp: ModuleType, code: int, name: str, title: str) -> None:
    kind = getattr(acp, name)
    error = kind()
    assert (error.code, error.message, error.data) == (code, title, acp.UNSET)
    assert error.to_json() == {"code": code, "message": title}
    assert str(error) == f"{title} ({code})"
    assert str(code) in kind.__doc__ or title in kind.__doc__
    assert isinstance(error, acp.RequestError)
    twin = acp.RequestError.from_json({"code": code, "message": "own words", "data": [1]})
    assert type(twin) is kind
    assert (twin.code, twin.message, twin.data, str(twin)) == (code, "own words", [1], f"own words ({code}): [1]")


def test_none_is_no_data(acp: ModuleType, bare: ModuleType) -> None:
    """Editors in Lua cannot read an error with null in it."""
    for package in (acp, bare):
        error = package.RequestError("no", code=-32001, data=None)
        assert (str(error), error.to_json()) == ("no (-32001)", {"code": -32001, "message": "no"})


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("401 invalid api key", "401 invalid api key"),
        ("401\ninvalid\x1b[2J", "401\\ninvalid\\x1b[2J"),
        ("x" * 1000, "x" * 200),
        ({"details": "no key"}, "{'details': 'no key'}"),
        (list(range(1000)), "[0, 1, 2, 3, 4, 5, ...]"),
    ],
)
def test_the_text_has_message_code_and_the_start_of_the_data(
    acp: ModuleType, bare: ModuleType, data: Any, shown: str
) -> None:
    for package in (acp, bare):
        error = package.InternalError(data=data)
        assert str(error) == f"Internal error (-32603): {shown}"
        assert (error.message, error.to_json()["message"]) == ("Internal error", "Internal error")
        assert error.args == ("Internal error",)


def test_the_docstring_names_only_attributes_that_there_are(acp: ModuleType, auth: ModuleType) -> None:
    assert "attributes" not in acp.RequestError.__doc__
    assert "attributes" in auth.RequestError.__doc__


@pytest.mark.parametrize("data", [None, 0, False, "", [], {}, {"a": [None]}])
def test_data_of_every_kind(acp: ModuleType, bare: ModuleType, data: Any) -> None:
    for package in (acp, bare):
        raw = {"code": -32603, "message": "m", "data": data}
        error = package.RequestError.from_json(raw)
        assert error.data == data
        assert error.to_json() == (raw if data is not None else {"code": -32603, "message": "m"})
        json.dumps(error.to_json())


@pytest.mark.parametrize("code", [1, 0, -1, 4711, -32001, -32099, 2**40])
def test_a_code_without_a_name(acp: ModuleType, bare: ModuleType, code: int) -> None:
    for package in (acp, bare):
        error = package.RequestError.from_json({"code": code, "message": "m"})
        assert type(error) is package.RequestError
        assert error.to_json() == {"code": code, "message": "m"}


def test_a_code_of_ones_own(acp: ModuleType) -> None:
    error = acp.RequestError("no credits", code=402, data={"left": 0})
    assert error.to_json() == {"code": 402, "message": "no credits", "data": {"left": 0}}
    assert acp.RequestError().code == -32603

    class NoCreditsError(acp.RequestError):  # type: ignore[misc, name-defined]
        code = 402
        title = "No credits"

    assert NoCreditsError().to_json() == {"code": 402, "message": "No credits"}


def test_the_class_keeps_its_code(acp: ModuleType) -> None:
    """A code given to one error does not leak into the others."""
    acp.MethodNotFoundError("m", code=1)
    assert acp.MethodNotFoundError().code == -32601
    assert acp.MethodNotFoundError.code == -32601


@pytest.mark.parametrize(
    "raw",
    [
        None,
        "error",
        [],
        {},
        {"code": -32000},
        {"message": "m"},
        {"code": "-32000", "message": "m"},
        {"code": True, "message": "m"},
        {"code": 1.5, "message": "m"},
        {"code": None, "message": "m"},
        {"code": -32000, "message": None},
        {"code": -32000, "message": ["m"]},
    ],
)
def test_a_malformed_error_is_an_error_all_the_same(acp: ModuleType, bare: ModuleType, raw: Any) -> None:
    for package in (acp, bare):
        error = package.RequestError.from_json(raw)
        assert type(error) is package.InternalError
        assert error.data == raw
        assert "malformed" in error.message


def test_a_whole_number_is_a_code(acp: ModuleType, bare: ModuleType) -> None:
    for package in (acp, bare):
        assert package.RequestError.from_json({"code": -32601.0, "message": "m"}).code == -32601


def errors(acp: ModuleType) -> list[Any]:
    return [
        *(kind() for kind in acp.errors.ERROR_CLASSES.values()),
        acp.RequestError("m", code=7),
        acp.RequestError("m", code=7, data=None),
        acp.InvalidParamsError("m", data={"path": "$.a"}),
        acp.InvalidParamsError(""),
        acp.RequestError.from_json({"code": -32602, "message": "own words"}),
        acp.RequestError.from_json({"code": 3, "message": "m", "data": [1]}),
    ]


@pytest.mark.parametrize("version", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_can_be_pickled(acp: ModuleType, version: int) -> None:
    for error in errors(acp):
        assert_same(pickle.loads(pickle.dumps(error, version)), error)


def test_errors_can_be_copied(acp: ModuleType) -> None:
    for error in errors(acp):
        assert_same(copy.copy(error), error)
        assert_same(copy.deepcopy(error), error)


def assert_same(twin: Any, error: Any) -> None:
    assert type(twin) is type(error)
    assert twin.to_json() == error.to_json()
    assert (str(twin), repr(twin), twin.args) == (str(error), repr(error), error.args)


def test_the_repr_names_class_message_and_code(acp: ModuleType) -> None:
    assert repr(acp.RequestError("it's over", code=7)) == 'RequestError("it\'s over", code=7)'


# --- What the schema adds to the error object -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def auth(packages: Packages) -> ModuleType:
    return packages(SchemaChoice(release="0.10.8", extensions=("auth-methods",)))


def test_additional_members_of_the_error_are_typed(auth: ModuleType) -> None:
    raw = {
        "code": -32000,
        "message": "m",
        "authMethods": [{"type": "env_var", "id": "a", "name": "n", "varName": "KEY"}],
    }
    error = auth.RequestError.from_json(raw)
    assert type(error) is auth.AuthenticationRequiredError
    assert error.auth_methods == [auth.AuthMethodEnvVar(id="a", name="n", var_name="KEY")]
    assert error.to_json() == raw
    assert_same(pickle.loads(pickle.dumps(error)), error)
    assert pickle.loads(pickle.dumps(error)).auth_methods == error.auth_methods


def test_additional_members_are_absent_unless_given(auth: ModuleType) -> None:
    assert auth.AuthenticationRequiredError().auth_methods is auth.UNSET
    assert auth.AuthenticationRequiredError().to_json() == {"code": -32000, "message": "Authentication required"}
    assert auth.InternalError(auth_methods=[]).to_json()["authMethods"] == []


def test_a_malformed_additional_member_leaves_the_error_malformed(auth: ModuleType) -> None:
    raw = {"code": -32000, "message": "m", "authMethods": [{}]}
    error = auth.RequestError.from_json(raw)
    assert (type(error), error.data) == (auth.InternalError, raw)


def test_keep_unknown_keeps_the_members_of_an_error(packages: Packages) -> None:
    """A proxy must not lose them."""
    acp = packages(SchemaChoice(release="2026-11-02"), options=Options(keep_unknown=True))
    raw = {"code": -32000, "message": "m", "later": {"a": 1}}
    assert acp.RequestError.from_json(raw).to_json() == raw


@pytest.mark.parametrize("data", [{"sessionId": "s"}, {"anything": [1]}, "text", None])
def test_data_with_a_type(packages: Packages, data: Any) -> None:
    """Version 2 says what the data of some errors is."""
    acp = packages(SchemaChoice(protocol=2, release="2026-11-02"))
    raw = {"code": -32002, "message": "m", "data": data}
    written = {**raw} if data is not None else {"code": -32002, "message": "m"}
    assert acp.RequestError.from_json(raw).to_json() == written
    typed = acp.SessionNotFoundErrorData(session_id="s")
    assert acp.ResourceNotFoundError(data=typed).to_json()["data"] == {"sessionId": "s"}
