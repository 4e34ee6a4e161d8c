# SPDX-License-Identifier: Apache-2.0
"""The reference, generated from --help, --list and --describe of the programs. As manual pages (troff, man macros), and
as sections in Markdown for the site.

Nothing of it is kept in the sources, so it can't be out of step."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from iocast import listing
from iocast.ground import binaries
from iocast.cli.app import GROUPS, Verbs, group_of
from iocast.errors import RunError
from iocast.ground.files import write_text
from iocast.listing import Described

GROUP = re.compile(r"^(\S.*):$")  # a heading of --help
OPTION = re.compile(r"^  (-.+?)(?:\s{2,}(\S.*))?$")
CONTINUED = re.compile(r"^\s{8,}(\S.*)$")


class Page:
    """The description of one thing, in parts: (kind, text...). It becomes a manual page or a section of the site."""

    def __init__(self, name: str, section: int, summary: str, version: str) -> None:
        self.name, self.section, self.summary, self.version = name, section, summary, version
        self.parts: list[tuple[str, ...]] = []

    def heading(self, title: str) -> None:
        self.parts.append(("heading", title))

    def subheading(self, title: str) -> None:
        self.parts.append(("subheading", title))

    def synopsis(self, *forms: str) -> None:
        self.heading("Synopsis")
        self.parts.append(("synopsis", *forms))

    def paragraph(self, text: str) -> None:
        self.parts.append(("paragraph", text))

    def item(self, term: str, text: str) -> None:
        self.parts.append(("item", term, text))

    def verbatim(self, text: str) -> None:
        self.parts.append(("verbatim", text))

    def go_on(self, text: str) -> None:
        """Adds to the last text."""
        self.parts[-1] = (*self.parts[-1][:-1], f"{self.parts[-1][-1]} {text}")

    def see_also(self, *pages: str) -> None:
        self.parts.append(("see also", *pages))

    @property
    def file(self) -> str:
        return f"man{self.section}/{self.name}.{self.section}"

    def troff(self) -> str:
        """With the man macros."""
        lines = [f'.TH {_text(self.name.upper())} {self.section} "" "iocast {_text(self.version)}" "iocast manual"']
        lines += [".SH NAME", f"{_text(self.name)} \\- {_text(self.summary)}"]
        for kind, *texts in self.parts:
            if kind in ("heading", "subheading"):
                lines.append(f".SH {_text(texts[0].upper())}" if kind == "heading" else f".SS {_text(texts[0])}")
            elif kind == "synopsis":
                for program, _, rest in (form.partition(" [") for form in texts):
                    lines += [f".B {_text(program)}", f"[{_text(rest)}" if rest else "", ".br"]
            elif kind == "paragraph":
                lines += [".PP", _text(texts[0])]
            elif kind == "item":
                lines += [".TP", f".B {_text(texts[0])}", _text(texts[1])]
            elif kind == "verbatim":
                lines += [".PP", ".nf", *(_text(line) for line in texts[0].splitlines()), ".fi"]
            else:
                references = (
                    f"\\fB{_text(name)}\\fP({section})" for name, section in (page.split(".") for page in texts)
                )
                lines += [".SH SEE ALSO", ", ".join(references)]
        return "\n".join(line for line in lines if line) + "\n"

    def markdown(self, level: int) -> str:
        """A section whose heading is of this level; of the parts, each thing's name is an anchor."""
        lines = [
            f"{'#' * level} {_plain(self.name)} {{#{self.name}}}",
            "",
            _plain(self.summary[:1].upper() + self.summary[1:]) + ".",
        ]
        for kind, *texts in self.parts:
            if kind == "heading" and texts[0] not in ("Synopsis", "Description"):
                lines += ["", f"**{_plain(texts[0])}**"]
            elif kind == "subheading":
                lines += ["", f"{'#' * (level + 1)} {_plain(texts[0])} {{#{texts[0].replace(' ', '-')}}}"]
            elif kind == "paragraph":
                lines += ["", _plain(texts[0])]
            elif kind == "item":
                lines += ["", f"`{texts[0]}`", f":   {_plain(texts[1])}"]
            elif kind in ("synopsis", "verbatim"):
                lines += ["", "```text", *texts, "```"]
        return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """As running text that means nothing to troff."""
    plain = (
        text.strip("\n")
        .replace("\\", "\\e")
        .replace("-", "\\-")
        .replace("'", "\\(aq")
        .replace("`", "\\(ga")
        .replace("^", "\\(ha")
        .replace("~", "\\(ti")
    )
    return "\\&" + plain if plain.startswith(".") else plain


def _plain(text: str) -> str:
    """As running text that means nothing to Markdown."""
    return re.sub(r"([\\`*_\[\]<>#|{}])", r"\\\1", text.strip())


def all_pages(app: Verbs) -> list[Page]:
    """iocast(1), its verbs, the programs, and what there is of each kind.

    @raises RunError when a program is not built"""
    version = str(binaries.run_json([binaries.find("iocast-bench"), "--version", "--json"])["version"])
    return [
        *_verbs(app, version),
        _program("iocast-bench", version),
        _program("iocast-sim", version),
        *_things(version),
    ]


def write_manual(app: Verbs, out: Path) -> list[Path]:
    """Writes all pages below `out`, in man1 and man7.

    @raises RunError when a program is not built"""
    pages = all_pages(app)
    for page in pages:
        write_text(out / page.file, page.troff())
    return [out / page.file for page in pages]


def _verbs(app: Verbs, version: str) -> Iterator[Page]:
    """The program, and a page for each of its verbs."""
    main = Page("iocast", 1, str(app.help).rstrip(".").lower(), version)
    main.synopsis("iocast VERB [OPTION...] [ARGUMENT...]", "iocast VERB --help")
    main.heading("Verbs")
    shown = app.shown()
    for group in GROUPS:
        main.subheading(group)
        for name, verb in shown.items():
            if group_of(name) == group:
                main.item(name, str(verb.help).partition("\n\n")[0])
    main.heading("Exit status")
    main.paragraph(str(app.epilog).removeprefix("Exit status: "))
    main.heading("Environment")
    main.item(
        "IOCAST_BUILD",
        "Directory whose bin/ has iocast-bench and iocast-sim; else they are looked for beside the package, then in "
        "PATH.",
    )
    main.item(
        "IOCAST_HOME",
        "Directory that has platforms/, campaigns/ and workload/catalogue/, when they are not where they were "
        "installed.",
    )
    main.see_also(
        "iocast-bench.1",
        "iocast-sim.1",
        *(f"iocast-{name}.1" for name in shown),
        *(f"iocast-{name}.7" for name in THINGS),
    )
    yield main
    for name, verb in shown.items():
        summary, _, more = str(verb.help).partition("\n\n")
        page = Page(f"iocast-{name}", 1, summary.rstrip("."), version)
        context = verb.make_context(name, [], resilient_parsing=True)
        words = [word.translate({ord(c): None for c in "{}"}).upper() for word in verb.collect_usage_pieces(context)]
        page.synopsis(f"iocast {name} {' '.join(words).replace('[OPTIONS]', '[OPTION...]')}")
        if more:
            page.heading("Description")
            page.paragraph(" ".join(more.split()))
        for title, records in verb.sections(context).items():
            page.heading(title)
            for term, text in records:
                page.item(term, text)
        page.heading("Examples")
        for example in re.split(r"; (?=iocast )|\n\n", str(verb.epilog).partition(": ")[2]):
            page.verbatim(example)
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
            page.go_on(more[1])
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


def _parameters(page: Page, described: Described, prefix: str = "") -> None:
    for parameter in described["parameters"]:
        default = f" Default: {parameter['default']}." if parameter["default"] else ""
        page.item(f"{prefix}{parameter['name']}", f"{parameter['meaning']} [{parameter['unit']}].{default}")


def _source(page: Page, described: Described) -> None:
    page.paragraph(f"Source: {described['source'].rstrip('.')}.")


def _backend(page: Page, described: Described) -> None:
    if not described["available"]:
        page.paragraph(f"Not in this build. {described['needs']}")
    _parameters(page, described, f"--{described['name']}.")


def _pattern(page: Page, described: Described) -> None:
    _source(page, described)
    _parameters(page, described)


def _workload(page: Page, described: Described) -> None:
    page.paragraph(f"Pattern: {described['pattern']}.")
    _pattern(page, described)


def _primitive(page: Page, described: Described) -> None:
    for key in described["keys"]:
        page.item(key["name"], key["meaning"])


def _campaign(page: Page, described: Described) -> None:
    _source(page, described)
    page.paragraph(
        f"Workload: {described['workload']}. Points (ranks, nodes, waiting factor, settings): "
        f"{', '.join(described['points'])}. Repeats of each: {described['repeats']}."
    )
    if described["steps"]:
        page.paragraph(f"Steps of each point: {', '.join(described['steps'])}.")


def _format(page: Page, described: Described) -> None:
    page.paragraph(f"Name {described['takes']}.")


Writer = Callable[[Page, Described], None]
THINGS: dict[str, tuple[str, Writer]] = {
    "backends": ("what iocast-bench can measure", _backend),
    "patterns": ("kinds of workloads and their parameters", _pattern),
    "workloads": ("the catalogue of workloads", _workload),
    "platforms": ("storage systems that can be simulated", _source),
    "primitives": ("what a platform is made of", _primitive),
    "campaigns": ("which runs iocast measure makes", _campaign),
    "formats": ("what iocast import reads", _format),
}


def _things(version: str) -> Iterator[Page]:
    for what, (summary, write) in THINGS.items():
        page = Page(f"iocast-{what}", 7, summary, version)
        page.heading("Description")
        for entry in listing.entries(what):
            page.subheading(entry["name"])
            page.paragraph(entry["summary"])
            write(page, listing.described(what, entry["name"]))
        page.see_also("iocast.1")
        yield page
