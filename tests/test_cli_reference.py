"""`docs/cli.md` is generated: from the commands by typer, and from the table of options.

`pytest tests/test_cli_reference.py --accept-goldens` writes it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import typer
import typer.main
from typer.cli import get_docs_for_click

from acpgen.cli.app import make_app
from acpgen.config.keys import KEYS, Key
from acpgen.config.kinds import ValueKind
from tests.support import REPOSITORY

PAGE = REPOSITORY / "docs" / "cli.md"

INTRODUCTION = """\
# The command line

<!-- The tests generate this page from the program: `pytest tests/test_cli_reference.py --accept-goldens`. -->
Every command of acpgen with its options, and the [keys of the configuration](#configuration). Most projects need two
commands, the second one in CI:

```sh
acpgen build --role agent --out src/my_agent/acp
acpgen check --role agent --out src/my_agent/acp
```

`acpgen COMMAND --help` prints the same texts. Results go to stdout, diagnostics to stderr.

"""

CONFIGURATION = """\
## Configuration

`[tool.acpgen]` in `pyproject.toml` has defaults for the options of a build. acpgen reads the nearest file with such a
table, from the working folder up to the top of the checkout. The command line wins over the file. Paths in the file are
relative to its folder.

For several packages, add a table `[tool.acpgen.outputs.NAME]` for each. Keys that an output does not have come from
`[tool.acpgen]`. `acpgen config` prints the values in effect.

| key | value | default | meaning |
|---|---|---|---|
"""


def page() -> str:
    """The text of the page."""
    group: Any = typer.main.get_command(make_app())
    context: Any = typer.Context(group, info_name="acpgen")
    commands = get_docs_for_click(obj=group, ctx=context, name="acpgen").removeprefix("# `acpgen`\n\n")
    return INTRODUCTION + commands.rstrip() + "\n\n" + CONFIGURATION + "".join(map(row, KEYS.values()))


def row(key: Key) -> str:
    values = ", ".join(f'`"{choice}"`' for choice in key.choices) if key.kind is ValueKind.CHOICE else key.kind.value
    default = f"`{json.dumps(key.default)}`" if key.default_text else ""
    return f"| `{key.name}` | {values} | {default} | {key.help} |\n"


def test_the_page_is_what_the_program_says(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--accept-goldens"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "accept the new page with --accept-goldens"


@pytest.mark.parametrize("key", KEYS.values(), ids=list(KEYS))
def test_each_key_is_an_option_of_a_build(key: Key) -> None:
    """The help text, the names and the default of an option are those of the table; only a file can have `renames`."""
    group: Any = typer.main.get_command(make_app())
    for command in ("build", "check"):
        parameters = [each for each in group.commands[command].params if key.option and each.help.startswith(key.help)]
        if key.kind is ValueKind.NAMES:
            assert parameters == []
            continue
        (parameter,) = parameters
        names = [*(key.option or "").split("/"), *([key.short] if key.short else [])]
        assert sorted([*parameter.opts, *parameter.secondary_opts]) == sorted(names)
        assert (key.default_text or "") in parameter.help


def test_each_option_of_a_build_is_a_key() -> None:
    """Options that `build` and `check` have in common are keys, but for those about configuration and format."""
    group: Any = typer.main.get_command(make_app())
    options = {
        name: [each for each in group.commands[name].params if not getattr(each, "hidden", False)]
        for name in ("build", "check")
    }
    build, check = ({opt for each in found for opt in each.opts} for found in options.values())
    keys = {key.option.split("/")[0] for key in KEYS.values() if key.option}
    shorts = {key.short for key in KEYS.values() if key.short}
    assert build & check == {"names", "--config", "--no-config", "--format", *keys, *shorts}
