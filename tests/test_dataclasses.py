"""The generated classes are dataclasses in every respect."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import logging
import pickle
import pprint
import threading
import typing
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import (
    Alias,
    AnyJson,
    Const,
    Enum,
    Field,
    InlineEnum,
    ListOf,
    MapOf,
    Model,
    Nullable,
    Options,
    Primitive,
    Ref,
    Scalar,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
)
from tests.support import Packages, model_of, schema_of
from tests.test_probes import contains

pytestmark = pytest.mark.every_python

SOURCES = {1: SchemaChoice(protocol=1, release="2026-11-02"), 2: SchemaChoice(protocol=2, release="2026-11-02")}


class Samples:
    """Makes a valid JSON value for any type of a model: with what is required only, or with everything (`full`)."""

    def __init__(self, model: Model, *, full: bool = False) -> None:
        self._model = model
        self._full = full

    def of(self, expression: TypeExpr) -> Any:
        match expression:
            case Scalar():
                return self._scalar(expression)
            case Const(value):
                return value
            case InlineEnum(values=(first, *_)):
                return first
            case ListOf(item=item, min_items=count):
                return [self.of(item) for _ in range(max(count, int(self._full)))]
            case MapOf(inner):
                return {"someKey": self.of(inner)} if self._full else {}
            case Nullable(inner):
                return self.of(inner)
            case AnyJson():
                return {"anyJson": [None, True]}
            case Ref(name):
                return self.named(name)
        raise AssertionError(expression)

    def named(self, name: str) -> Any:
        definition = self._model.by_name[name]
        match definition:
            case Struct(fields=fields):
                return {each.wire: self._property(each) for each in fields if each.required or self._full}
            case TaggedUnion(variants=(first, *_)):
                return self.named(first.target)
            case UntaggedUnion(members=(first, *_)):
                return self.of(first.type)
            case Enum(members=(first, *_)):
                return first.value
            case Alias(type=target):
                return self.of(target)
        raise AssertionError(definition)

    def _property(self, field: Field) -> Any:
        """The version that is negotiated is that of the model: another one is answered in another way."""
        negotiation = self._model.negotiation
        return self._model.protocol if negotiation and field.wire == negotiation.version else self.of(field.type)

    def _scalar(self, scalar: Scalar) -> Any:
        match scalar.primitive:
            case Primitive.STRING:
                return "x" * max(1, scalar.min_length or 0)
            case Primitive.INTEGER | Primitive.NUMBER:
                return scalar.minimum or 0
            case Primitive.BOOLEAN:
                return True
            case Primitive.NULL:
                return None


@functools.cache
def model_for(sources: SchemaChoice) -> Model:
    return model_of(sources)[0]


def instances(packages: Packages, protocol: int) -> Iterator[tuple[type, Any, Any]]:
    """Each class of a protocol, with an instance and the JSON that it was decoded from; twice, minimal and full."""
    sources = SOURCES[protocol]
    acp, model = packages(sources), model_for(sources)
    for full in (False, True):
        samples = Samples(model, full=full)
        for definition in model.definitions:
            if isinstance(definition, Struct):
                kind = getattr(acp, definition.name)
                raw = samples.named(definition.name)
                yield kind, acp.decode(kind, raw), raw


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(SOURCES[1])


# --- Every class ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [1, 2])
def test_there_are_instances_of_every_class(packages: Packages, protocol: int) -> None:
    acp = packages(SOURCES[protocol])
    made = {kind for kind, _, _ in instances(packages, protocol)}
    public = {vars(acp.types)[name] for name in acp.__all__ if name in vars(acp.types)} - {acp.Struct}
    assert made == {each for each in public if isinstance(each, type) and dataclasses.is_dataclass(each)}
    assert len(made) > 100


@pytest.mark.parametrize("protocol", [1, 2])
def test_instances_are_of_the_class_and_encode_to_what_they_came_from(packages: Packages, protocol: int) -> None:
    acp = packages(SOURCES[protocol])
    for kind, value, raw in instances(packages, protocol):
        assert type(value) is kind
        encoded = acp.encode(value)
        assert contains(encoded, raw)
        assert acp.encode(acp.decode(kind, encoded)) == encoded


@pytest.mark.parametrize("protocol", [1, 2])
def test_copies_are_equal_and_of_the_same_class(packages: Packages, protocol: int) -> None:
    for kind, value, _ in instances(packages, protocol):
        for twin in (copy.copy(value), copy.deepcopy(value), dataclasses.replace(value)):
            assert twin is not value
            assert type(twin) is kind
            assert twin == value
            assert (twin != value) is False


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize("version", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_every_class(packages: Packages, protocol: int, version: int) -> None:
    acp = packages(SOURCES[protocol])
    for kind, value, _ in instances(packages, protocol):
        twin = pickle.loads(pickle.dumps(value, version))
        assert type(twin) is kind
        assert twin == value
        unset = [name for name in names_of(value) if getattr(value, name) is acp.UNSET]
        assert [name for name in names_of(twin) if getattr(twin, name) is acp.UNSET] == unset


def names_of(value: Any) -> list[str]:
    return [each.name for each in dataclasses.fields(value)]


@pytest.mark.parametrize("protocol", [1, 2])
def test_the_field_of_almost_every_class_is_inherited_and_comes_last(packages: Packages, protocol: int) -> None:
    acp = packages(SOURCES[protocol])
    heirs = {kind for kind, _, _ in instances(packages, protocol) if issubclass(kind, acp.types.WithMeta)}
    assert len(heirs) > 100
    for kind in heirs:
        assert "meta" not in vars(kind).get("__annotations__", {})
        assert [each for each in names_of(kind) if each != "extra"][-1] == "meta"
    text = acp.ContentBlockText(text="t", meta={"a": 1})
    assert repr(text).endswith("text='t', meta={'a': 1})")
    assert list(dataclasses.asdict(text))[-1] == list(inspect.signature(type(text)).parameters)[-1] == "meta"


@pytest.mark.parametrize("protocol", [1, 2])
def test_the_fields_of_an_instance_are_for_dataclasses_alone(packages: Packages, protocol: int) -> None:
    """Libraries in C look for the attribute, and would write an instance by the names in Python."""
    for kind, value, _ in instances(packages, protocol):
        assert dataclasses.is_dataclass(value)
        assert dataclasses.fields(value) == dataclasses.fields(kind)
        assert [field.name for field in dataclasses.fields(kind)] == names_of(value)
        assert not hasattr(value, "__dataclass_fields__")
        assert not hasattr(kind, "__dataclass_fields__")
        assert "__dataclass_fields__" not in vars(kind)


@pytest.mark.parametrize("protocol", [1, 2])
def test_every_class_has_slots_alone(packages: Packages, protocol: int) -> None:
    for kind, value, _ in instances(packages, protocol):
        assert not hasattr(value, "__dict__"), kind
        with pytest.raises(AttributeError):
            value.no_such_attribute = 1


@pytest.mark.parametrize("protocol", [1, 2])
def test_the_fields_are_the_attributes(packages: Packages, protocol: int) -> None:
    sources = SOURCES[protocol]
    acp, model = packages(sources), model_for(sources)
    for definition in model.definitions:
        if isinstance(definition, Struct):
            kind = getattr(acp, definition.name)
            names = [each.name for each in definition.fields] + ["extra"] * definition.keeps_extra
            assert sorted(names_of(kind)) == sorted(names)
            assert all(each.kw_only and each.init for each in dataclasses.fields(kind))
            slots = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
            assert sorted(slots) == sorted(names)


@pytest.mark.parametrize("protocol", [1, 2])
def test_the_repr_evaluates_to_the_same_and_leaves_out_what_is_unset(packages: Packages, protocol: int) -> None:
    acp = packages(SOURCES[protocol])
    for _, value, _ in instances(packages, protocol):
        text = repr(value)
        assert "UNSET" not in text
        assert eval(text, dict(vars(acp.types))) == value


@pytest.mark.parametrize("protocol", [1, 2])
def test_asdict_of_every_class(packages: Packages, protocol: int) -> None:
    for _, value, _ in instances(packages, protocol):
        found = dataclasses.asdict(value)
        assert list(found) == names_of(value)
        assert dataclasses.astuple(value) == tuple(tupled(getattr(value, name)) for name in names_of(value))


def tupled(value: Any) -> Any:
    """What `astuple` makes of a value."""
    match value:
        case list():
            return [tupled(item) for item in value]
        case dict():
            return {key: tupled(item) for key, item in value.items()}
    return tuple(tupled(getattr(value, name)) for name in names_of(value)) if is_instance(value) else value


def is_instance(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


# --- One class ------------------------------------------------------------------------------------------------------


def test_arguments_are_by_keyword_only(acp: ModuleType) -> None:
    with pytest.raises(TypeError):
        acp.EnvVariable("name", "value")
    with pytest.raises(TypeError, match="value"):
        acp.EnvVariable(name="n")
    with pytest.raises(TypeError, match="surplus"):
        acp.EnvVariable(name="n", value="v", surplus=1)


def test_equality_is_of_class_and_attributes(acp: ModuleType) -> None:
    one = acp.EnvVariable(name="n", value="v")
    assert one == acp.EnvVariable(name="n", value="v")
    assert one != acp.EnvVariable(name="n", value="w")
    assert one != acp.HttpHeader(name="n", value="v")
    assert one != acp.EnvVariable(name="n", value="v", meta=None)
    assert one != {"name": "n", "value": "v"}
    update = acp.SessionUpdateToolCallUpdate(tool_call_id="t")
    assert update != acp.ToolCallUpdate(tool_call_id="t")


def test_instances_have_no_hash(acp: ModuleType) -> None:
    """As with `@dataclass`: they are mutable."""
    with pytest.raises(TypeError, match="unhashable"):
        hash(acp.EnvVariable(name="n", value="v"))


def test_attributes_can_be_set(acp: ModuleType) -> None:
    value = acp.EnvVariable(name="n", value="v")
    value.value = "w"
    assert acp.encode(value) == {"name": "n", "value": "w"}


def test_replace_and_asdict(acp: ModuleType) -> None:
    value = acp.ToolCallLocation(path="/a", line=3)
    assert dataclasses.replace(value, line=acp.UNSET) == acp.ToolCallLocation(path="/a")
    with pytest.raises(TypeError):
        dataclasses.replace(value, column=1)
    assert dataclasses.asdict(value) == {"path": "/a", "line": 3, "meta": acp.UNSET}
    nested = acp.SessionUpdateToolCall(tool_call_id="t", title="T", locations=[value])
    assert dataclasses.asdict(nested)["locations"] == [{"path": "/a", "line": 3, "meta": acp.UNSET}]
    assert dataclasses.asdict(nested)["kind"] is acp.UNSET


def test_repr_of_a_nested_value(acp: ModuleType) -> None:
    value = acp.PromptRequest(session_id="s", prompt=[acp.ContentBlockText(text="t")], meta=None)
    assert repr(value) == ("PromptRequest(session_id='s', prompt=[ContentBlockText(type='text', text='t')], meta=None)")


def test_classes_serve_as_patterns(acp: ModuleType) -> None:
    found = []
    for update in (
        acp.SessionUpdateAgentMessageChunk(content=acp.ContentBlockText(text="t")),
        acp.SessionUpdateToolCallUpdate(tool_call_id="i", status="failed"),
        acp.SessionUpdateToolCallUpdate(tool_call_id="i"),
    ):
        match update:
            case acp.SessionUpdateAgentMessageChunk(content=acp.ContentBlockText(text=text)):
                found.append(text)
            case acp.ToolCallUpdate(tool_call_id=found_id, status="failed"):
                found.append(found_id)
            case acp.ToolCallUpdate(status=acp.UNSET):
                found.append("unset")
    assert found == ["t", "i", "unset"]
    assert acp.ToolCallUpdate.__match_args__ == ()


def test_mutable_defaults_are_not_shared(acp: ModuleType) -> None:
    first, second = acp.InitializeResponse(protocol_version=1), acp.InitializeResponse(protocol_version=1)
    assert first.auth_methods == []
    first.auth_methods.append(acp.AuthMethodAgent(id="a", name="n"))
    first.agent_capabilities.prompt_capabilities.image = True
    assert second == acp.InitializeResponse(protocol_version=1)
    assert acp.decode(acp.InitializeResponse, {"protocolVersion": 1}) == second


def test_fallbacks_of_leniency_are_not_shared(acp: ModuleType) -> None:
    raw = {"cwd": "/", "mcpServers": None}
    first, second = acp.decode(acp.NewSessionRequest, raw), acp.decode(acp.NewSessionRequest, raw)
    first.mcp_servers.append(acp.McpServerStdio(name="n", command="c", args=[], env=[]))
    assert second.mcp_servers == []
    assert acp.decode(acp.NewSessionRequest, raw).mcp_servers == []


def test_extra_is_not_shared(packages: Packages) -> None:
    acp = packages(SOURCES[2])
    first, second = acp.ReplayFromOther(type="_x"), acp.ReplayFromOther(type="_x")
    first.extra["more"] = 1
    assert second.extra == {}
    assert acp.ReplayFromOther(type="_x").extra == {}


def test_fields_whose_names_hide_builtins_and_keywords(packages: Packages) -> None:
    names = ["list", "dict", "str", "int", "float", "bool", "type", "class", "self", "None", "key", "data", "types"]
    properties: dict[str, Any] = {name: {"type": "string", "default": name} for name in names}
    properties["list"] = {"type": "array", "items": {"type": "string"}, "default": ["a"]}
    properties["tail"] = {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}}
    acp = packages.of(schema_of(Hiding={"type": "object", "properties": properties}))
    value = acp.decode(acp.Hiding, {"class": "c", "tail": [{"a": 1}]})
    assert (value.class_, value.self_, value.list, value.tail) == ("c", "self", ["a"], [{"a": 1}])
    assert acp.encode(value)["class"] == "c"
    assert copy.deepcopy(value) == value
    assert "tail=[{'a': 1}]" in repr(value)


def test_a_class_that_extends_another_has_its_attributes_once(acp: ModuleType) -> None:
    kind = acp.SessionUpdateToolCallUpdate
    assert "tool_call_id" not in kind.__slots__
    assert [name for name in names_of(kind) if name != "session_update"] == names_of(acp.ToolCallUpdate)


# --- Made when it is needed -----------------------------------------------------------------------------------------


def test_the_constructor_is_made_once_when_it_is_first_called(
    monkeypatch: pytest.MonkeyPatch, packages: Packages
) -> None:
    schema = schema_of(One={"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})
    acp = packages.of(schema)
    made: list[str] = []
    dataclass = dataclasses.dataclass
    monkeypatch.setattr(
        dataclasses,
        "dataclass",
        lambda **options: lambda kind: made.append(kind.__name__) or dataclass(**options)(kind),
    )
    assert acp.decode(acp.One, {"a": "b"}).a == "b"
    assert made == []
    assert [acp.One(a="b").a, acp.One(a="c").a] == ["b", "c"]
    assert made == ["One"]


def test_threads_may_construct_a_class_at_the_same_time(packages: Packages) -> None:
    properties = {f"p_{number}": {"type": "string", "default": "x"} for number in range(200)}
    acp = packages.of(schema_of(Wide={"type": "object", "properties": properties}))
    start = threading.Barrier(8)

    def construct() -> Any:
        start.wait()
        return acp.Wide(p_1="y")

    with ThreadPoolExecutor(8) as threads:
        found = [future.result() for future in [threads.submit(construct) for _ in range(8)]]
    assert all(each == found[0] for each in found)


def test_what_tools_see(acp: ModuleType) -> None:
    kind = acp.EnvVariable
    assert str(inspect.signature(kind)) == (
        "(*, name: 'str', value: 'str', meta: 'dict[str, Any] | None | UnsetType' = UNSET) -> None"
    )
    assert typing.get_type_hints(kind)["meta"] == dict[str, Any] | None | acp.UnsetType
    assert dataclasses.is_dataclass(kind)
    assert kind.__init__.__qualname__ == "EnvVariable.__init__"
    with pytest.raises(TypeError, match=r"EnvVariable.__init__\(\) missing 1 required keyword-only argument: 'value'"):
        kind(name="n")


@pytest.mark.needs("Python 3.13")
def test_copy_replace(acp: ModuleType) -> None:
    value = acp.EnvVariable(name="n", value="v")
    assert vars(copy)["replace"](value, value="w") == acp.EnvVariable(name="n", value="w")


# --- Classes that users derive --------------------------------------------------------------------------------------


def test_a_class_without_annotations(acp: ModuleType) -> None:
    class Loud(acp.EnvVariable):  # type: ignore[misc, name-defined]
        """An ordinary class, with attributes of its own."""

        def __init__(self, **values: Any) -> None:
            super().__init__(**values)
            self.mark = self.name.upper()

    value = Loud(name="n", value="v")
    assert (value.mark, value.value, value.meta) == ("N", "v", acp.UNSET)
    assert names_of(value) == ["name", "value", "meta"]
    assert acp.encode(value) == {"name": "n", "value": "v"}
    assert value == Loud(name="n", value="v") != acp.EnvVariable(name="n", value="v")
    assert copy.deepcopy(value).mark == "N"


ANNOTATED = """
from dataclasses import field
from typing import Any, ClassVar

class Noted(Base):
    kinds: ClassVar[list[str]] = ["a"]
    note: str
    value: str = "v"
    tags: list[str] = field(default_factory=lambda: ["new"])
"""


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_a_class_with_annotations(acp: ModuleType, future: str) -> None:
    names = {"Base": acp.EnvVariable, "__name__": __name__}
    exec(compile(future + ANNOTATED, "noted.py", "exec", dont_inherit=True), names)
    kind: Any = names["Noted"]
    value = kind(name="n", note="why")
    assert (value.note, value.value, value.tags, kind.kinds) == ("why", "v", ["new"], ["a"])
    assert value.tags is not kind(name="n", note="why").tags
    assert names_of(kind) == ["name", "value", "note", "tags", "meta"]
    assert kind.__slots__ == ("note", "tags")
    assert not hasattr(value, "__dict__")
    assert acp.encode(value) == {"name": "n", "value": "v"}
    assert dataclasses.replace(value, note="x").note == "x"
    assert repr(value) == "Noted(name='n', value='v', note='why', tags=['new'])"
    with pytest.raises(TypeError, match="note"):
        kind(name="n")
    with pytest.raises(TypeError, match="value"):
        acp.EnvVariable(name="n")


def test_a_class_with_annotations_and_a_constructor(acp: ModuleType) -> None:
    class Noted(acp.EnvVariable):  # type: ignore[misc, name-defined]
        note: str

        def __init__(self, note: str) -> None:
            super().__init__(name="n", value="v")
            self.note = note

    assert (Noted("why").note, Noted("why").value) == ("why", "v")
    assert names_of(Noted) == ["name", "value", "note", "meta"]


def test_a_class_that_is_decorated_again(acp: ModuleType) -> None:
    @dataclasses.dataclass(kw_only=True)
    class Noted(acp.EnvVariable):  # type: ignore[misc, name-defined]
        note: str = "why"

    assert Noted(name="n", value="v").note == "why"
    assert Noted(name="n", value="v") == Noted(name="n", value="v", note="why")
    assert sorted(names_of(Noted)) == ["meta", "name", "note", "value"]


def test_post_init_is_called(acp: ModuleType) -> None:
    class Counted(acp.EnvVariable):  # type: ignore[misc, name-defined]
        length: int = 0

        def __post_init__(self) -> None:
            self.length = len(self.value)

    assert Counted(name="n", value="four").length == 4


@dataclasses.dataclass
class Timed:
    seconds: float = 1.5


def test_a_dataclass_as_another_base(acp: ModuleType) -> None:
    class Both(acp.EnvVariable, Timed):  # type: ignore[misc, name-defined]
        note: str = "why"

    assert (Both(name="n", value="v").seconds, Both(name="n", value="v", seconds=3).seconds) == (1.5, 3)
    assert sorted(names_of(Both)) == ["meta", "name", "note", "seconds", "value"]


def test_fields_with_options(acp: ModuleType) -> None:
    class Hidden(acp.EnvVariable):  # type: ignore[misc, name-defined]
        start: dataclasses.InitVar[int] = 0
        cache: dict[str, int] = dataclasses.field(default_factory=dict, repr=False, compare=False)

        def __post_init__(self, start: int) -> None:
            self.cache["start"] = start

    value = Hidden(name="n", value="v", start=3)
    assert value.cache == {"start": 3}
    assert repr(value) == "Hidden(name='n', value='v')"
    assert value == Hidden(name="n", value="v")


def test_two_bases(acp: ModuleType) -> None:
    class Marker:
        __slots__ = ()

        def mark(self) -> str:
            return "marked"

    class Marked(Marker, acp.EnvVariable):  # type: ignore[misc, name-defined]
        pass

    assert Marked(name="n", value="v").mark() == "marked"


# --- UNSET ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(pickle.HIGHEST_PROTOCOL + 1))
def test_unset_is_one_object(acp: ModuleType, version: int) -> None:
    assert pickle.loads(pickle.dumps(acp.UNSET, version)) is acp.UNSET
    assert copy.copy(acp.UNSET) is acp.UNSET
    assert copy.deepcopy([acp.UNSET])[0] is acp.UNSET
    assert acp.UnsetType.UNSET is acp.UNSET


def test_unset_is_false_and_unlike_everything(acp: ModuleType) -> None:
    assert not acp.UNSET
    assert repr(acp.UNSET) == "UNSET"
    for other in (None, False, "", 0, "UNSET"):
        assert other != acp.UNSET


def test_unset_in_conditions(acp: ModuleType) -> None:
    value = acp.ToolCallUpdate(tool_call_id="t")
    assert (value.title or "untitled") == "untitled"


AS_TEXT: dict[str, Callable[[Any], Any]] = {
    "f-string": lambda value: f"{value}",
    "f-string with a width": lambda value: f"{value:>10}",
    "f-string of str": lambda value: f"{value!s}",
    "format": "{}".format,
    "str": str,
    "percent": lambda value: "%s" % value,  # noqa: UP031
    "join": lambda value: ", ".join(map(str, [value])),
    "print": print,
    "a record of a log": lambda value: logging.makeLogRecord({"msg": "%s", "args": (value,)}).getMessage(),
}


@pytest.mark.parametrize("text_of", AS_TEXT.values(), ids=AS_TEXT.keys())
def test_unset_is_no_text(acp: ModuleType, text_of: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"^str\(UNSET\), called by .*\.py, has no text: .* write `value or \.\.\.`"):
        text_of(acp.ToolCallUpdate(tool_call_id="t").title)


def test_unset_is_shown_to_who_looks_for_a_mistake(acp: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    value = acp.ToolCallUpdate(tool_call_id="t").title
    assert f"{value!r} {value=}" == "UNSET value=UNSET"
    assert pprint.pformat([value]) == "[UNSET]"
    logging.getLogger("user").warning("title: %r", value)
    assert [record.getMessage() for record in caplog.records] == ["title: UNSET"]
    assert "title: 'str | None | UnsetType' = UNSET" in str(inspect.signature(acp.ToolCallUpdate))


# --- With --keep-unknown --------------------------------------------------------------------------------------------


def test_every_class_keeps_what_it_does_not_know(packages: Packages) -> None:
    acp = packages(SOURCES[1], options=Options(keep_unknown=True))
    samples = Samples(model_for(SOURCES[1]), full=True)
    for definition in model_for(SOURCES[1]).definitions:
        if isinstance(definition, Struct):
            raw = samples.named(definition.name) | {"_unknown": {"deep": [1]}}
            value = acp.decode(getattr(acp, definition.name), raw)
            assert value.extra == {"_unknown": {"deep": [1]}}
            assert acp.encode(value) == raw
            assert pickle.loads(pickle.dumps(value)) == value
            assert dataclasses.replace(value, extra={}) != value
