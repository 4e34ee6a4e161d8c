# SPDX-License-Identifier: Apache-2.0
"""Manual pages (troff, man macros), made of what the programs say of themselves: --help, --list and --describe.

Nothing of them is kept in the sources, so they can't be out of step."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from iocast import binaries
from iocast.errors import RunError
from iocast.files import write_text

GROUP = re.compile(r"^(\S.*):$")  # a heading of --help
OPTION = re.compile(r"^  (-.+?)(?:\s{2,}(\S.*))?$")
CONTINUED = re.compile(r"^\s{8,}(\S.*)$")


class Page:
    def __init__(self, name: str, section: int, summary: str, version: str) -> None:
        self.file = f"man{section}/{name}.{section}"
        self.lines = [f'.TH {_text(name.upper())} {section} "" "iocast {_text(version)}" "iocast manual"', ".SH NAME", f"{_text(name)} \\- {_text(summary)}"]

    def heading(self, title: str) -> None:
        self.lines.append(f".SH {_text(title.upper())}")

    def subheading(self, title: str) -> None:
        self.lines.append(f".SS {_text(title)}")

    def synopsis(self, *forms: str) -> None:
        self.heading("Synopsis")
        for form in forms:
            program, _, rest = form.partition(" [")
            self.lines += [f".B {_text(program)}", f"[{_text(rest)}" if rest else "", ".br"]

    def paragraph(self, text: str) -> None:
        self.lines += [".PP", _text(text)]

    def item(self, term: str, text: str) -> None:
        self.lines += [".TP", f".B {_text(term)}", _text(text)]

    def verbatim(self, text: str) -> None:
        self.lines += [".PP", ".nf", *(_text(line) for line in text.splitlines()), ".fi"]

    def see_also(self, *pages: str) -> None:
        self.heading("See also")
        self.lines.append(", ".join(f"\\fB{_text(name)}\\fP({section})" for name, section in (page.split(".") for page in pages)))

    @property
    def text(self) -> str:
        return "\n".join(line for line in self.lines if line) + "\n"


def _text(text: str) -> str:
    """As running text that means nothing to troff."""
    plain = text.strip("\n").replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    return "\\&" + plain if plain.startswith(".") else plain


def write_manual(app: Any, out: Path) -> list[Path]:
    """Writes all pages below `out`, in man1 and man7. `app` is the command line as click sees it.

    @raises RunError when a program is not built"""
    version = str(binaries.run_json([binaries.find("iocast-bench"), "--version", "--json"])["version"])
    pages = [*_verbs(app, version), _program("iocast-bench", version), _program("iocast-sim", version), *_things(version)]
    for page in pages:
        write_text(out / page.file, page.text)
    return [out / page.file for page in pages]


def _verbs(app: Any, version: str) -> Iterator[Page]:
    """iocast(1), and a page for each of its verbs."""
    main = Page("iocast", 1, app.help.rstrip(".").lower(), version)
    main.synopsis("iocast VERB [OPTION...] [ARGUMENT...]", "iocast VERB --help")
    main.heading("Verbs")
    shown = {name: verb for name, verb in app.commands.items() if not verb.hidden}
    for name, verb in shown.items():
        main.item(name, verb.help)
    main.heading("Exit status")
    main.paragraph(app.epilog.removeprefix("Exit status: "))
    main.heading("Environment")
    main.item("IOCAST_BUILD", "Directory whose bin/ has iocast-bench and iocast-sim; else they are looked for beside the package, then in PATH.")
    main.item("IOCAST_HOME", "Directory that has platforms/, campaigns/ and workload/catalogue/, when they are not where they were installed.")
    main.see_also("iocast-bench.1", "iocast-sim.1", *(f"iocast-{name}.1" for name in shown), *(f"iocast-{name}.7" for name in THINGS))
    yield main
    for name, verb in shown.items():
        page = Page(f"iocast-{name}", 1, verb.help.rstrip("."), version)
        context = verb.make_context(name, [], resilient_parsing=True)
        words = [word.translate({ord(c): None for c in "{}"}).upper() for word in verb.collect_usage_pieces(context)]
        page.synopsis(f"iocast {name} {' '.join(words).replace('[OPTIONS]', '[OPTION...]')}")
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            records = [r for p in verb.params if p.param_type_name == kind and (r := p.get_help_record(context))]
            if records:
                page.heading(title)
                for term, text in records:
                    page.item(term, text)
        if verb.epilog:
            page.heading("Examples")
            for example in verb.epilog.removeprefix("Example: ").split("; iocast "):
                page.verbatim(example if example.startswith("iocast") else f"iocast {example}")
        page.see_also("iocast.1")
        yield page


def _program(name: str, version: str) -> Page:
    """The page of a program from its --help, every line of it."""
    done = subprocess.run([binaries.find(name), "--help"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"{name} --help failed: {done.stderr.strip()}")
    first, *lines = done.stdout.splitlines()
    page = Page(name, 1, first.removeprefix(name).strip().rstrip("."), version)
    page.synopsis(f"{name} [OPTION...]")
    group, rest = "", 0
    for rest, line in enumerate(lines):  # noqa: B007
        if line.startswith("Examples:"):
            break
        if line.startswith("Usage:") or not line.strip():
            continue
        if heading := GROUP.match(line):
            if not group:
                page.heading("Options")
            group = heading[1]
            if group != "Options":
                page.subheading(group)
        elif option := OPTION.match(line):
            page.item(option[1], option[2] or "")
        elif more := CONTINUED.match(line):
            page.lines.append(_text(more[1]))
        else:
            page.paragraph(line)
    page.heading("Examples")
    for line in lines[rest + 1 :]:
        if line.startswith(("Exit codes: ", "Exit status: ")):
            page.heading("Exit status")
            page.paragraph(line.partition(": ")[2])
        elif line.startswith("    ") or line.strip().startswith("iocast"):
            page.verbatim(line)
        elif line.strip():
            page.paragraph(line.strip())
    page.see_also("iocast.1", *(f"iocast-{name}.7" for name in THINGS))
    return page


def _parameters(page: Page, described: Mapping[str, Any], prefix: str = "") -> None:
    for parameter in described["parameters"]:
        default = f" Default: {parameter['default']}." if parameter["default"] else ""
        page.item(f"{prefix}{parameter['name']}", f"{parameter['meaning']} [{parameter['unit']}].{default}")


def _backend(page: Page, described: Mapping[str, Any]) -> None:
    if not described["available"]:
        page.paragraph(f"Not in this build. {described['needs']}")
    _parameters(page, described, f"--{described['name']}.")


def _workload(page: Page, described: Mapping[str, Any]) -> None:
    page.paragraph(f"Source: {described['source']}.")
    _parameters(page, described)


def _platform(page: Page, described: Mapping[str, Any]) -> None:
    page.paragraph(f"Source: {described['source']}.")


def _primitive(page: Page, described: Mapping[str, Any]) -> None:
    for key in described["keys"]:
        page.item(key["name"], key["meaning"])


Writer = Callable[[Page, Mapping[str, Any]], None]
THINGS: dict[str, tuple[str, str, Writer]] = {
    "backends": ("iocast-bench", "what iocast-bench can measure", _backend),
    "patterns": ("iocast-sim", "kinds of workloads and their parameters", _workload),
    "workloads": ("iocast-sim", "the catalogue of workloads", _workload),
    "platforms": ("iocast-sim", "storage systems that can be simulated", _platform),
    "primitives": ("iocast-sim", "what a platform is made of", _primitive),
}


def _things(version: str) -> Iterator[Page]:
    for what, (program, summary, write) in THINGS.items():
        page = Page(f"iocast-{what}", 7, summary, version)
        page.heading("Description")
        for entry in binaries.run_json([binaries.find(program), "--list", what, "--json"])[what]:
            page.subheading(entry["name"])
            page.lines.append(_text(entry["summary"]))
            write(page, binaries.run_json([binaries.find(program), "--describe", entry["name"], "--json"]))
        page.see_also("iocast.1", f"{program}.1")
        yield page
