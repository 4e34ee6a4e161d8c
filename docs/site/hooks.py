# SPDX-License-Identifier: Apache-2.0
"""Additions to mkdocs.yml: pages that lie elsewhere, pages that are generated from the code, and the search index."""

from __future__ import annotations

import ast
import json
import posixpath
import re
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from textwrap import dedent, indent

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).parent)]

from iocast.ground import binaries  # noqa: E402
from iocast.cli import manual_pages  # noqa: E402
from iocast.cli.app import command  # noqa: E402
from iocast.errors import InputError, RunError  # noqa: E402
from iocast.study import keys  # noqa: E402
from iocast.whatif.platform import platform_page  # noqa: E402

import ranges  # noqa: E402

index: list[tuple[str, str, str]] = []
"""Address, title and words of every section."""
NETWORK = {
    "topology": "star (default), fat-tree, islands, dragonfly or torus; each has keys of its own here",
    "latency": "one way of a message between a client node and a server",
    "hop_latency": "more for each link between switches; not of a star",
    "node_bandwidth": "each client node's link",
    "server_bandwidth": "each server's link",
    "backbone_bandwidth": "all links together",
    "servers": "by station. leaf or router: number of its instances at one switch, default as many as client nodes; "
    "among: nodes puts them at the nodes' switches, else they have their own; bandwidth of an instance's link",
    "never_limited": "transfers below this size wait for no link, unless others use it or they come to half of it",
}
"""Keys of `network`, which is no primitive."""
PLAYABLE = "lustre-to-try.html"
"""Of the site alone: a page that simulates."""
ELSEWHERE = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changes.md": "CHANGELOG.md",
    "facts.md": "platforms/facts/README.md",
    "tests.md": "tests/README.md",
    "validation.md": "validation/README.md",
}
"""Pages that lie outside of docs/, by their address in the site; the examples' pages are found."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    index.clear()
    for page, file in ELSEWHERE.items():
        files.append(File.generated(config, page, content=(REPOSITORY / file).read_text()))
    for page in sorted((REPOSITORY / "examples").glob("*/README.md")):
        files.append(File.generated(config, f"examples/{page.parent.name}.md", content=page.read_text()))
    try:
        made = reference()
    except (InputError, RunError) as error:
        raise PluginError(str(error)) from error
    for name, content in made.items():
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    files.append(File.generated(config, PLAYABLE, content=playable()))
    return files


def playable() -> str:
    """The page of lustre, to try out; where its simulator was not built it says so."""
    described = binaries.run_json([binaries.find("iocast-sim"), "--describe", "lustre", "--json"])
    return platform_page(described, "lustre")[0]


def reference() -> dict[str, str]:
    """Markdown by page."""
    commands, things = [], {}
    for page in manual_pages.all_pages(command()):
        if page.section == 1:
            commands.append(page.markdown(2))
        else:
            things[page.name.removeprefix("iocast-")] = page.markdown(1).replace(
                f"# {page.name} {{", f"# {page.name.removeprefix('iocast-').capitalize()} {{", 1
            )
    return {
        "commands": "# Commands and options\n\n" + "\n".join(commands),
        **things,
        "keys": platform_keys(),
        "study-keys": study_keys(),
        "python": python_modules(),
    }


def platform_keys() -> str:
    """A row for each key of platform files: meanings from the simulator, units and ranges from its sources."""
    simulator, known = binaries.find("iocast-sim"), ranges.ranges()
    lines = [
        "# Keys of platform files",
        "",
        "Each primitive, its keys, what they mean and what they may be. [Platform files](../platforms.md) shows them",
        "in use. Times, sizes and rates are written with their unit. The columns range and default are in seconds,",
        "bytes and bytes a second. A default that other keys decide is in the meaning.",
        "",
        "| primitive | key | value | range | default | meaning |",
        "|---|---|---|---|---|---|",
    ]
    rows = [("network", {"name": key, "meaning": meaning}) for key, meaning in NETWORK.items()]
    for entry in binaries.run_json([simulator, "--list", "primitives", "--json"])["primitives"]:
        described = binaries.run_json([simulator, "--describe", entry["name"], "--json"])
        rows += [(entry["name"], key) for key in described["keys"]]
    for primitive, key in rows:
        at = ranges.declared(key) or known.get((primitive, key["name"]), ranges.Range(""))
        unit = ranges.unit_of(at, key["name"])
        lines.append(
            f"| {primitive} | `{key['name']}` | {unit} | {at.between} | {at.default} | {_cell(key['meaning'])} |"
        )
    return "\n".join(lines) + "\n"


def study_keys() -> str:
    """A row for each key of STUDY.yaml: meanings from `iocast.study.keys`, ranges from the code that reads them."""
    lines = [
        "# Keys of STUDY.yaml",
        "",
        "Each key, what it may be, and what it means. [Studies](../studies.md) shows them in use. NAME stands for a",
        "name of your own. A key without a default is needed where its section is there.",
        "",
        "| key | range | default | meaning |",
        "|---|---|---|---|",
    ]
    for key, entry in keys.all_keys().items():
        lines.append(f"| `{key}` | {entry.between} | {entry.default} | {_cell(entry.meaning)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def python_modules() -> str:
    """The docstrings of the package's modules, classes and functions, those whose names begin with _ left out."""
    lines = [
        "# Python modules",
        "",
        "What `import iocast` gives. Verbs of the command line call these functions. Times are in seconds, sizes in",
        "bytes.",
    ]
    for file in sorted((REPOSITORY / "iocast").rglob("*.py")):
        tree = ast.parse(file.read_text())
        name = ".".join(file.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
        if not file.stem.startswith("__main__"):
            lines += ["", f"## {name} {{#{name}}}", *paragraphs(ast.get_docstring(tree) or ""), *documented(tree)]
    return "\n".join(lines) + "\n"


def documented(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        docstring = ast.get_docstring(node)
        if docstring is None:
            continue
        if isinstance(node, ast.ClassDef):
            what = f"class {node.name}"
        else:
            what = f"{node.name}({ast.unparse(node.args)})" + (
                f" -> {ast.unparse(node.returns)}" if node.returns else ""
            )
        first, *more = paragraphs(docstring)[1::2]
        yield from ("", f"`{what}`", f":   {first}", *(line for text in more for line in ("", indent(text, "    "))))


def paragraphs(docstring: str) -> list[str]:
    """Of a docstring, each after an empty line, as Markdown: what is indented as it stands, all else as text."""
    parts = [part.strip("\n") for part in re.split(r"\n\s*\n", docstring)]
    texts = [
        indent(dedent(part), "    ")
        if part.startswith("  ")
        else re.sub(r"([\\*_\[\]<>#|{}])", r"\\\1", " ".join(part.split()))
        for part in parts
    ]
    return [line for text in texts for line in ("", text)]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links between files of the repository become links between pages; of results, which are no pages, the words
    stay."""
    if page.file.src_uri == "what-if-page.md":
        markdown = markdown.replace("the one of\n  `lustre`", f"[the one of `lustre`]({PLAYABLE})")
    if page.file.src_uri == "validation.md":
        markdown = re.sub(r"\[([^\]]*)\]\((?!\.\./docs/)[^)]*\)", r"\1", markdown)
    return re.sub(
        r"\]\(([^)#\s:]+)(#[^)\s]*)?\)",
        lambda link: f"]({target(link[1], page.file.src_uri)}{link[2] or ''})",
        markdown,
    )


def target(link: str, page: str) -> str:
    if page.startswith("reference/"):
        return link
    lies_at = ELSEWHERE.get(page) or re.sub(r"^examples/([^/]*)\.md$", r"examples/\1/README.md", page)
    in_repository = posixpath.normpath(
        posixpath.join(posixpath.dirname(lies_at if lies_at != page else f"docs/{page}"), link)
    )
    if found := re.fullmatch(r"workload/catalogue/(.*)\.yaml", in_repository):
        return posixpath.relpath("reference/workloads.md", posixpath.dirname(page) or ".") + f"#{found[1]}"
    if found := re.fullmatch(r"examples/([^/]*)(/README\.md)?", in_repository):
        in_site = f"examples/{found[1]}.md"
    elif in_repository in ELSEWHERE.values():
        in_site = next(name for name, file in ELSEWHERE.items() if file == in_repository)
    elif in_repository.startswith("docs/"):
        in_site = in_repository.removeprefix("docs/")
    else:
        return link  # MkDocs says that it leads nowhere
    return posixpath.relpath(in_site, posixpath.dirname(page) or ".")


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    for section in re.split(r"(?=<h[1-4] id=)", html):
        head = re.match(r'<h[1-4] id="([^"]*)">(.*?)(?:<a class="headerlink".*?)?</h[1-4]>', section, re.DOTALL)
        if head:
            words = " ".join(unescape(re.sub(r"<[^>]+>", " ", section[head.end() :])).split())
            title = unescape(re.sub(r"<[^>]+>", "", head[2]))
            index.append((f"{page.url}#{head[1]}", title if title == page.title else f"{title} - {page.title}", words))
    return html.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


def on_post_build(config: MkDocsConfig) -> None:
    """As a script, since pages that are read without a server may load nothing else."""
    Path(config.site_dir, "search-index.js").write_text(
        "const sections = " + json.dumps(index, ensure_ascii=False) + ";\n"
    )
