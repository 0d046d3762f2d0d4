"""The benchmarks work: a run that is as short as can be, and what they rely on. No test looks at a time."""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from acpgen.config import SchemaChoice
from benchmarks import __main__, contenders, generation, imports, remote, stdio
from benchmarks.conversation import Conversation
from benchmarks.lab import HERE, PYTHON_SDK, SMOKE, TYPESCRIPT_SDK, Lab, bundled_schema, read_corpus
from benchmarks.parts import PARTS
from benchmarks.report import BEGIN, END, ENOUGH, HEADINGS, Results, block, rows, update_page
from benchmarks.requirements import COMPARISONS, Comparison
from benchmarks.rounds import Measure, interleave, measures
from benchmarks.workers.stopwatch import Calls, Message, check, read
from tests.interop import peers
from tests.needs import lacks, need
from tests.support import DEEP, REPOSITORY, Packages, deep_except
from tests.test_probes import contains

CORPUS = read_corpus()
SCHEMA = json.loads(bundled_schema().read_text(encoding="utf-8"))
PAGE = REPOSITORY / "docs" / "performance.md"


def payload(message: Any) -> Any:
    return message["result"] if "result" in message else message["params"]


# --- The corpus -----------------------------------------------------------------------------------------------------


def test_there_are_twelve_messages() -> None:
    assert len(CORPUS) == 12
    assert len({entry["type"] for entry in CORPUS.values()}) == 8


@pytest.mark.parametrize("name", CORPUS)
def test_messages_are_valid(name: str) -> None:
    entry = CORPUS[name]
    schema = {"$schema": SCHEMA["$schema"], "$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{entry['type']}"}
    jsonschema.Draft202012Validator(schema).validate(payload(entry["message"]))
    expected = {
        "request": {"id", "method", "params"},
        "notification": {"method", "params"},
        "response": {"id", "result"},
    }
    assert entry["message"].keys() == {"jsonrpc", *expected[str(entry["kind"])]}


@pytest.mark.parametrize("name", CORPUS)
def test_messages_come_back_as_they_were(name: str, packages: Packages) -> None:
    acp = packages(SchemaChoice())
    entry = CORPUS[name]
    raw = payload(entry["message"])
    kind = getattr(acp, str(entry["type"]))
    sent = acp.encode(acp.decode(kind, raw))
    assert contains(raw, sent)  # without nulls that mean nothing, and defaults of capabilities
    assert acp.decode(kind, sent) == acp.decode(kind, raw)


# --- What figures are made of ---------------------------------------------------------------------------------------


def test_rounds_are_interleaved_and_turn_round() -> None:
    seen: list[str] = []

    def take(name: str) -> dict[str, float]:
        seen.append(name)
        return {"time": float(len(seen))}

    samples = interleave({"a": lambda: take("a"), "b": lambda: take("b")}, 3)
    assert "".join(seen) == "abbaab"
    (measure,) = measures("part", {"time": "s"}, samples)
    assert measure.values == {"a": [1.0, 4.0, 5.0], "b": [2.0, 3.0, 6.0]}
    assert measure.median("a") == 4.0
    assert measure.ratio("a", "b") == pytest.approx(5 / 6)


def test_comparisons_are_about_rows() -> None:
    for wanted in COMPARISONS:
        assert wanted.measure in PARTS[wanted.part].measures
        if wanted.aim is not None:
            assert wanted.reached(wanted.aim)


def test_all_rows_are_compared() -> None:
    rows = {(part, name) for part, content in PARTS.items() for name in content.measures}
    assert rows == {(wanted.part, wanted.measure) for wanted in COMPARISONS}


def test_a_bound_is_reached_or_not_and_without_one_there_is_nothing_to_reach() -> None:
    wanted = Comparison(part="imports", measure=imports.WITH, denominator=PYTHON_SDK)
    assert wanted.reached(1.0) is None
    assert replace(wanted, aim=0.5).reached(0.5)
    assert not replace(wanted, aim=0.5).reached(0.6)
    assert replace(wanted, aim=0.5, required=0.7).reached(0.6)
    assert not replace(wanted, aim=2.0, sense="≥").reached(1.9)


# --- A short run ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    need("linux")
    cache = getattr(request.config, "cache", None)
    default = cache.mkdir("interop-peers") if cache else tmp_path_factory.getbasetemp().parent / "interop-peers"
    found = contenders.find(peers.home(Path(default)))
    return Lab(folder=tmp_path_factory.mktemp("bench"), sizes=SMOKE, peers=found)


NEEDS = {
    "imports": {PYTHON_SDK},
    "codec": {PYTHON_SDK},
    "stdio": {PYTHON_SDK, TYPESCRIPT_SDK},
    "remote": {PYTHON_SDK},
    "generation": {generation.GENERATOR},
}


WAYS = [way for way in remote.WAYS if DEEP or way.server != "hypercorn"]
"""Of part `remote`, each transport with one server; the third server speaks both, and is run in `deep`."""


# part `generation` runs the generators of others, which change with nothing here
@pytest.mark.full
@pytest.mark.parametrize("part", deep_except(PARTS.keys() - {"generation"}, {part: part for part in PARTS}))
def test_a_part_gives_all_its_rows(part: str, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = set(PARTS[part].measures)
    if part == "remote":
        if remote.missing(lab):
            lacks("registry", ", ".join(remote.missing(lab)))
        monkeypatch.setattr(remote, "WAYS", WAYS)
        wanted = {way.named(quantity) for way in WAYS for quantity in remote.UNITS}
    found = PARTS[part].measure(lab)
    assert {each.name for each in found} == wanted
    for each in found:
        for values in each.values.values():
            assert len(values) == SMOKE.rounds
            assert all(math.isfinite(value) and value > 0 for value in values)
    missing = NEEDS[part] & lab.peers.missing.keys()
    compared = {who for wanted in COMPARISONS if wanted.part == part for who in (wanted.numerator, wanted.denominator)}
    shown = {who for each in found for who in each.values}
    assert compared - shown <= missing
    if missing:
        lacks("registry", ", ".join(f"{lab.peers.missing[who]} for {who}" for who in sorted(missing)))


@pytest.mark.full
def test_all_agents_say_the_same(lab: Lab) -> None:
    said = {}
    for who, command in stdio.agents(lab).items():
        conversation = Conversation(command, lab.log)
        conversation.prompts(3, 2)
        conversation.prompts(2, 3, turns=True)
        conversation.pipelined(4, 3, 1)
        conversation.close()
        conversation.check()
        said[who] = conversation.messages()[1:]
    assert len(said) >= 3
    assert all(each == said[stdio.OURS] for each in said.values())


@pytest.mark.full
def test_agents_give_up_their_loop_before_each_update_where_they_are_asked_to(lab: Lab) -> None:
    """Prompts that wait at the same time then take turns, which the blocking agent cannot do."""
    for who, command in stdio.agents(lab).items():
        conversation = Conversation(command, lab.log)
        conversation.pipelined(3, 4, 3, turns=True)
        conversation.close()
        conversation.check()
        said = [
            message["params"]["update"]["content"]["text"] for message in conversation.messages() if "method" in message
        ]
        turns = [next(texts) for _, texts in itertools.groupby(text.partition(":")[0] for text in said)]
        assert (len(turns) > 3) == (who != stdio.BLOCKING), who


def json_alone(message: Message) -> Calls:
    """A codec that does all that is asked of one."""
    payload_of = itemgetter("result" if message.kind == "response" else "params")
    return Calls(
        decode_dict=lambda: [message.payload],
        decode_line=lambda: [payload_of(json.loads(message.line))],
        encode_dict=lambda: message.payload,
        encode_line=lambda: message.line + b"\n",
        back=lambda decoded: decoded[0],
    )


def test_a_codec_is_measured_only_if_it_gives_messages_back() -> None:
    """Each worker checks its own calls; here are some that do nothing, or too little."""
    for message in read(HERE / "corpus"):
        calls = json_alone(message)
        check(message, calls)
        idle = [replace(calls, **{name: lambda: [{}]}) for name in ("decode_dict", "decode_line", "encode_dict")]
        idle += [replace(calls, encode_line=lambda: b"{}\n"), replace(calls, encode_line=lambda at=message: at.line)]
        idle += [replace(calls, decode_dict=lambda at=message: at.payload, back=lambda decoded: decoded)]
        for each in idle:
            with pytest.raises(ValueError, match=message.name):
                check(message, each)


# --- What is shown --------------------------------------------------------------------------------------------------


def results() -> Results:
    """Invented figures, of all parts."""
    who = (
        "acpgen",
        PYTHON_SDK,
        TYPESCRIPT_SDK,
        imports.BARE,
        generation.GENERATOR,
        generation.TYPER,
        remote.ALONE,
    )
    values = {name: [float(at), at + 1.5] for at, name in enumerate(who, 2)}
    found = [Measure(part, name, "ms", values) for part, content in PARTS.items() for name in content.measures]
    machine = {"processor": "A", "cores": "2", "memory": "1 GiB", "system": "S"}
    texts: dict[str, Any] = {"date": "2026-01-02", "versions": {"python": "3"}, "missing": {}}
    return Results(rounds=2, machine=machine, measures=found, **texts)


def test_results_come_back_from_json(tmp_path: Path) -> None:
    results().save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == results()


def test_the_table_has_a_line_for_each_ratio() -> None:
    found = rows(results())
    assert [(row.part, row.name) for row in found if row.measure] == [
        (part, name) for part, all_ in PARTS.items() for name in all_.measures
    ]
    assert sum(bool(row.ratio[0]) for row in found) == len(COMPARISONS)
    assert all(f"| {part} | {name} |" in block(results()) for part, all_ in PARTS.items() for name in all_.measures)


def test_what_few_rounds_give_is_called_provisional(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(__main__, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "performance.md").write_text(f"{BEGIN}\n{END}", encoding="utf-8")
    for rounds, said in ((1, "Only 1 round: provisional."), (ENOUGH, "")):
        few = replace(results(), rounds=rounds)
        few.save(tmp_path / "results.json")
        assert __main__.main(["--load", str(tmp_path / "results.json"), "--page"]) == 0
        assert ("provisional" in block(few)) == bool(said)
        assert said in block(few)
        warned = capsys.readouterr().err
        assert warned.startswith("warning: ") if said else not warned
        assert said in warned


def test_the_page_shows_what_is_measured(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = text.split(f"{BEGIN}\n")[1].split(f"\n{END}")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown.splitlines() if line[:1] == "|"]
    assert lines[0] == list(HEADINGS)
    names = [(part, name) for part, content in PARTS.items() for name in content.measures]
    assert [tuple(line[:2]) for line in lines[2:] if line[1]] == names
    assert sum(bool(line[HEADINGS.index("ratio")]) for line in lines[2:]) == len(COMPARISONS)
    copy = tmp_path / PAGE.name
    shutil.copy(PAGE, copy)
    update_page(copy, results())
    assert block(results()) in copy.read_text(encoding="utf-8")
    assert copy.read_text(encoding="utf-8").replace(block(results()), f"{BEGIN}\n{shown}\n{END}") == text


@pytest.mark.parametrize(("page", "count"), [(REPOSITORY / "README.md", 1), (PAGE, 5)])
def test_pages_have_their_charts(page: Path, count: int) -> None:
    shown = re.findall(r"^!\[.+\]\((\S+\.svg)\)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(shown) == count
    assert all((page.parent / path).is_file() for path in shown)


@pytest.fixture(scope="module")
def charts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The charts of the invented figures."""
    need("matplotlib")
    from benchmarks.charts import draw

    return draw(results(), tmp_path_factory.mktemp("charts"))


@pytest.mark.full
def test_the_chart_of_the_readme_has_only_what_a_visitor_compares(charts: list[Path]) -> None:
    start, throughput = (path.read_text(encoding="utf-8") for path in charts[:2])
    committed = (REPOSITORY / "docs/benchmarks/start.svg").read_text(encoding="utf-8")
    visible = {"acpgen", PYTHON_SDK, TYPESCRIPT_SDK}
    for chart in (start, committed):
        names = {text for text in labels(chart) if text[0].isalpha()}
        names.discard(imports.BARE)  # the third bar where TypeScript has no figure
        assert names == visible | {imports.WITH, stdio.START, "Start-up (ms, less is better)"}
    assert labels(throughput) > {*visible, imports.BARE, remote.ALONE}


def labels(chart: str) -> set[str]:
    """The texts are drawn as paths; matplotlib writes each into a comment."""
    return set(re.findall("<!-- (.*?) -->", chart))


SUMMARY = {
    ("stdio", "start to initialize response"): "start to first answer",
    ("stdio", "prompts, updates in one turn"): "prompts answered, ten updates each",
    ("codec", "encode to 12 dicts"): "encode 12 messages",
    ("stdio", "memory"): "resident memory of an agent",
}
"""The rows of the table whose figures the README has, and their names there."""


@pytest.mark.parametrize(("part", "name"), SUMMARY)
def test_the_readme_has_figures_of_the_table(part: str, name: str) -> None:
    (row,) = re.findall(rf"^\| {part} \| {name} \|(.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    (summary,) = re.findall(rf"^\| {SUMMARY[part, name]} \|(.*)$", readme, flags=re.MULTILINE)
    cells = [cell.strip() for cell in row.split("|")[:3]]
    assert [cell.strip() for cell in summary.split("|")[:3]] == [rounded(cell) for cell in cells]


def rounded(cell: str) -> str:
    """A cell of the table as the README has it: without decimals."""
    number, unit = re.fullmatch(r"([\d.,]*)(.*)", cell).groups()
    return f"{round(float(number))}{unit}" if number and "," not in number else cell


@pytest.mark.full
def test_charts_are_the_same_each_time(charts: list[Path], tmp_path: Path) -> None:
    from benchmarks.charts import CHARTS, draw

    assert [path.stem for path in charts] == list(CHARTS)
    assert [path.read_bytes() for path in charts] == [path.read_bytes() for path in draw(results(), tmp_path)]
