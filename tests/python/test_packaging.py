# SPDX-License-Identifier: Apache-2.0
"""What sites install: the prefix of cmake --install, the Python wheel, the module file, and the recipes of Spack and
Apptainer.

Neither Spack nor Apptainer is to be had as a package, so of their recipes it is tested that they agree with the build:
options, libraries, commands."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import REPOSITORY, find_program
from schedule import mostly_long

PACKAGING = REPOSITORY / "packaging"
MODULES = Path("/usr/share/modules/init/sh")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = find_program("iocast-bench")
    assert program is not None, "iocast-bench is not built; run ./check"
    directory = tmp_path_factory.mktemp("prefix")
    subprocess.run(
        ["cmake", "--install", str(program.parents[1]), "--prefix", str(directory)], check=True, capture_output=True
    )
    return directory


def test_installed_programs_find_their_data(prefix: Path, mpi_environment: dict[str, str], tmp_path: Path) -> None:
    def ask(program: str, *arguments: str) -> Any:
        command = [str(prefix / "bin" / program), *arguments, "--json"]
        return json.loads(
            subprocess.run(
                command, capture_output=True, text=True, check=True, cwd=tmp_path, env=mpi_environment
            ).stdout
        )

    assert ask("iocast-sim", "--describe", "lustre")["file"] == str(prefix / "share/iocast/platforms/lustre.yaml")
    for what, folder in (("platforms", "platforms"), ("workloads", "workload/catalogue")):
        source = {p.relative_to(REPOSITORY) for p in (REPOSITORY / folder).rglob("*.yaml")}
        assert source == {
            p.relative_to(prefix / "share/iocast") for p in (prefix / "share/iocast" / folder).rglob("*.yaml")
        }
        assert ask("iocast-sim", "--list", what)[what]
    assert ask("iocast-bench", "--backend", "dummy", "--dry-run")["workload"]["name"] == "md-workbench"


def test_the_wheel_has_its_data(prefix: Path, tmp_path: Path) -> None:
    """Installed without the sources, beside installed programs."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    copy = tmp_path / "sources"  # as from git: without what lies around in a folder one works in
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "iocast", "platforms", "campaigns"):
        (copy / name).symlink_to(REPOSITORY / name)
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(copy)], check=True
    )
    (wheel,) = tmp_path.glob("iocast-*.whl")
    subprocess.run(
        [*pip, "install", "--no-deps", "--ignore-installed", "--prefix", str(tmp_path / "python"), str(wheel)],
        check=True,
    )
    (package,) = (tmp_path / "python").rglob("site-packages/iocast")
    assert (tmp_path / "python/share/iocast/platforms/lustre.yaml").is_file()
    environment = {"PYTHONPATH": str(package.parent), "PATH": f"{prefix}/bin:{os.environ['PATH']}"}
    for arguments in (["list", "campaigns"], ["describe", "lustre"], ["list", "formats"]):
        done = subprocess.run(
            [str(tmp_path / "python/bin/iocast"), *arguments],
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 0 and len(done.stdout.splitlines()) > 1, done.stderr
    (tmp_path / "project.py").write_text(
        "import iocast\n"
        "small = {'datasets': 1, 'iterations': 10, 'objects': 10}\n"
        "answer = iocast.predict('queue', 1, 8, workload='md-workbench', settings=small, solver='analytic')\n"
        "print(iocast.__file__, answer.phases['benchmark'].rate.value > 0)\n"
    )
    project = subprocess.run(
        [sys.executable, "project.py"], capture_output=True, text=True, env=environment, cwd=tmp_path, check=True
    ).stdout
    assert project.split() == [str(package / "__init__.py"), "True"]
    report = subprocess.run(
        [
            sys.executable,
            "-c",
            "from iocast.report import page as p; print(p.__file__, sorted(x.name for x in p.HERE.glob('page.*')))",
        ],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=True,
    ).stdout
    assert str(package) in report and "page.html.j2" in report and "page.css" in report


def test_the_module_file(prefix: Path, tmp_path: Path) -> None:
    assert MODULES.is_file(), "install the Debian package environment-modules; ./check does"

    def shell(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        text = f". {MODULES}\nmodule use {PACKAGING}/modulefiles\n{script}"
        given = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **environment}
        return subprocess.run(["sh", "-c", text], capture_output=True, text=True, env=given, check=False)

    done = shell(
        'module load iocast && command -v iocast-sim && echo "$MANPATH $IOCAST_HOME" && module unload iocast && command'
        " -v iocast-sim",
        IOCAST_PREFIX=str(prefix),
    )
    assert done.stdout.split() == [f"{prefix}/bin/iocast-sim", f"{prefix}/share/man", f"{prefix}/share/iocast"], (
        done.stderr
    )
    assert "storage benchmark" in shell("module whatis iocast").stderr + shell("module whatis iocast").stdout
    nowhere = shell("module load iocast && command -v iocast-sim", IOCAST_PREFIX=str(tmp_path / "nowhere"))
    assert nowhere.returncode != 0 and "There is no iocast in" in nowhere.stderr
    version = re.search(r'^version = "(.*)"', (REPOSITORY / "pyproject.toml").read_text(), flags=re.MULTILINE)
    assert version and [p.name for p in (PACKAGING / "modulefiles/iocast").iterdir()] == [version[1]]
    assert f"project(iocast VERSION {version[1]} " in (REPOSITORY / "CMakeLists.txt").read_text()


class Recipe:
    """Runs packaging/spack's package.py with directives that write down their arguments."""

    def __init__(self) -> None:
        self.variants: dict[str, bool] = {}
        self.needs: dict[str, str] = {}  # package and the variant that needs it
        self._when: list[str] = []
        module = types.ModuleType("spack.package")

        class Build:
            def define(self, name: str, value: bool) -> str:
                return f"-D{name}:BOOL={'ON' if value else 'OFF'}"

        class Chosen:
            def __contains__(_, spec: str) -> bool:
                return self.chosen[spec[1:]] == (spec[0] == "+")

        Build.spec = Chosen()  # type: ignore[attr-defined]

        def within(variant: str) -> Any:
            class Within:
                def __enter__(_) -> None:
                    self._when.append(variant)

                def __exit__(_, *error: object) -> None:
                    self._when.pop()

            return Within()

        def depends_on(spec: str, when: str = "", type: object = "") -> None:
            self.needs[re.split("[@+~ ]", spec)[0]] = when or "".join(self._when)

        def ignored(*_: object, **__: object) -> Any:
            return lambda function: function

        recipe = self
        Build.define_from_variant = (  # type: ignore[attr-defined]
            lambda s, name, variant: s.define(name, recipe.chosen[variant])
        )
        module.__dict__.update(
            CMakePackage=Build, depends_on=depends_on, extends=depends_on, variant=lambda name, default,
            description: self.variants.update({name: default}),
            when=within, version=ignored, license=ignored, generator=ignored, run_after=ignored,
        )  # fmt: skip
        sys.modules |= {"spack": types.ModuleType("spack"), "spack.package": module}
        namespace: dict[str, Any] = {"__file__": str(PACKAGING / "spack/packages/iocast/package.py")}
        exec(compile(Path(namespace["__file__"]).read_text(), namespace["__file__"], "exec"), namespace)
        self.git = namespace["Iocast"].git
        self.build = namespace["Iocast"]()
        self.chosen = dict(self.variants)


# What CMake looks for, and what Spack calls it.
SPACK = {
    "yaml-cpp": "yaml-cpp", "nlohmann_json": "nlohmann-json", "fmt": "fmt", "CLI11": "cli11", "ZLIB": "zlib-api",
    "Boost": "boost", "MPI": "mpi",
    "simgrid": "simgrid", "Git": "git", "PkgConfig": "pkgconfig", "HDF5": "hdf5", "CURL": "curl", "OpenSSL": "openssl",
    "PostgreSQL": "postgresql",
    "mongoc-1.0": "mongo-c-driver",
}  # fmt: skip


def test_the_spack_recipe_agrees_with_the_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    recipe = Recipe()
    assert recipe.git == REPOSITORY.as_uri()
    scripts = "".join((REPOSITORY / folder / "CMakeLists.txt").read_text() for folder in (".", "real", "sim"))
    wanted = set(re.findall(r"(?:find_package|iocast_needs)\(([\w.-]+)", scripts)) | set(
        re.findall(r"IMPORTED_TARGET ([a-z0-9.-]+?)(?:[>)]|\s)", scripts)
    )
    wanted -= {"Threads", "GTest"}  # every system has them; only tests need it
    assert {SPACK[name] for name in wanted} <= set(recipe.needs)
    assert (
        recipe.needs["simgrid"] == "+sim" and recipe.needs["mpi"] == "+bench" and recipe.needs["py-numpy"] == "+python"
    )
    named = {
        re.split("[<>=]", name)[0]
        for name in re.findall(r'^  "([^"]+)",', (REPOSITORY / "pyproject.toml").read_text(), flags=re.MULTILINE)
    }
    assert {name.removeprefix("py-") for name in recipe.needs if name.startswith("py-")} - {"pip", "hatchling"} <= named
    # What the recipe says to CMake, CMake knows.
    recipe.chosen |= {"sim": False, "postgresql": True}
    done = subprocess.run(
        ["cmake", "-S", str(REPOSITORY), "-B", str(tmp_path), "-G", "Ninja", *recipe.build.cmake_args()],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "not used by the project" not in done.stderr
    cache = (tmp_path / "CMakeCache.txt").read_text()
    assert "IOCAST_SIM:BOOL=OFF" in cache and "IOCAST_REAL:BOOL=ON" in cache and "SIMGRID" not in cache
    assert (
        "PostgreSQL_LIBRARY" in cache
        and "CURL_LIBRARY" not in cache
        and "DISABLE_FIND_PACKAGE_CURL:BOOL=ON" in cache
        and "IOCAST_CEPHFS:BOOL=OFF" in cache
    )


def configured(place: Path, absent: list[str], *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        "cmake",
        "-S",
        str(REPOSITORY),
        "-B",
        str(place),
        "-G",
        "Ninja",
        *(f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in absent),
        *options,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_all_that_is_missing_is_one_message(tmp_path: Path) -> None:
    """With Debian's packages, all of which ./quickstart installs, and the two ways out."""
    done = configured(
        tmp_path,
        ["yaml-cpp", "fmt", "MPI", "PkgConfig"],
        "-DRANDOM123_INCLUDE_DIR=RANDOM123_INCLUDE_DIR-NOTFOUND",
        "-DCMAKE_FIND_ROOT_PATH=/nowhere",
        "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY",
    )
    assert done.returncode == 1 and done.stderr.count("CMake Error") == 1, done.stderr
    packages = re.findall(r"[a-z0-9-]+-dev|openmpi-bin|pkg-config(?=\))", done.stderr)
    assert {"libyaml-cpp-dev", "libfmt-dev", "libopenmpi-dev", "openmpi-bin", "pkg-config", "librandom123-dev"} <= set(
        packages
    )
    assert set(packages) <= set((PACKAGING / "debian-packages.txt").read_text().split())
    assert (
        "-DIOCAST_REAL=OFF" in done.stderr
        and "-DIOCAST_SIM=OFF" in done.stderr
        and "-DCMAKE_PREFIX_PATH" in done.stderr
    )


def test_what_is_built_and_what_is_left_out_is_listed(tmp_path: Path) -> None:
    done = configured(
        tmp_path,
        ["HDF5", "CURL", "PostgreSQL", "mongoc-1.0"],
        "-DIOCAST_SIM=OFF",
        "-DIOCAST_CEPHFS=OFF",
        "-DIOCAST_NFS=OFF",
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^-- iocast builds: iocast-bench(, iocast-queuefs)?$", done.stdout, re.MULTILINE)
    left_out = re.findall(r"^-- iocast leaves out: (.*) \((.*)\)$", done.stdout, re.MULTILINE)
    assert {what for what, _ in left_out} >= {
        "traces of operations: --trace and the workload replay",
        *(f"backend {name}" for name in ("s3", "postgresql", "mongodb", "cephfs", "nfs")),
    }
    needed = {package for _, packages in left_out for package in packages.split(", ")}
    assert needed <= set((PACKAGING / "debian-packages.txt").read_text().split())
    assert libraries_built(tmp_path) == set()


def libraries_built(build: Path) -> set[str]:
    """Names of those that programs load."""
    steps = subprocess.run(
        ["ninja", "-C", str(build), "-t", "commands", "all"], capture_output=True, text=True, check=True
    ).stdout
    return set(re.findall(r"-o lib/iocast/([\w-]+)\.so", steps))


def test_the_benchmark_alone_compiles_no_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where pkg-config knows no FUSE, nothing else links them."""
    monkeypatch.setenv("PKG_CONFIG_LIBDIR", str(tmp_path))
    done = configured(tmp_path, [], "-DIOCAST_SIM=OFF")
    assert done.returncode == 0, done.stderr
    steps = subprocess.run(
        ["ninja", "-C", str(tmp_path), "-t", "commands", "all"], capture_output=True, text=True, check=True
    ).stdout
    assert "/iocast_bench.dir/" in steps and "iocast_models" not in steps
    assert {"hdf5", "backend-s3", "backend-nfs"} <= libraries_built(tmp_path)


def test_libraries_of_a_prefix_are_found_after_install(tmp_path: Path) -> None:
    """On a cluster without root they are where no system looks. A library of Debian is copied there."""
    prefix = tmp_path / "prefix"
    (system,) = Path("/usr/lib").glob("*/cmake/yaml-cpp")
    libraries = prefix / system.parents[1].relative_to("/usr")
    shutil.copytree(system, libraries / "cmake/yaml-cpp")
    for library in system.parents[1].glob("libyaml-cpp.so*"):
        shutil.copy(library, libraries, follow_symlinks=False)
    shutil.copytree("/usr/include/yaml-cpp", prefix / "include/yaml-cpp")
    done = configured(tmp_path / "build", [], "-DIOCAST_SIM=OFF", f"-DCMAKE_PREFIX_PATH={prefix}")
    assert done.returncode == 0, done.stderr
    installs = (tmp_path / "build/real/cmake_install.cmake").read_text()
    assert re.search(rf'NEW_RPATH "[^"]*{libraries}[":]', installs), installs


def test_the_apptainer_definition(iocast: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    """Its sections are shell that can be read, it installs what packaging names, and what its %test runs, runs here."""
    text = (PACKAGING / "iocast.def").read_text()
    sections = dict(re.findall(r"^%(\w+)\n(.*?)(?=^%|\Z)", text, flags=re.MULTILINE | re.DOTALL))
    assert {"files", "post", "environment", "runscript", "test"} == set(sections) and re.search(
        r"^Bootstrap: \w+\nFrom: \S+$", text, re.MULTILINE
    )
    for name in ("post", "environment", "runscript", "test"):
        subprocess.run(["sh", "-n"], input=sections[name], text=True, check=True)
    for path in re.findall(r"packaging/\S+\.txt", sections["post"]):
        assert (REPOSITORY / path).is_file()
    build = find_program("iocast-sim")
    assert build is not None
    (tmp_path / "iocast").write_text(f'#!/bin/sh\nexec {sys.executable} -m iocast "$@"\n')
    (tmp_path / "iocast").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{build.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "IOCAST_BUILD": str(build.parents[1]),
    }
    done = subprocess.run(
        ["sh", "-e"], input=sections["test"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr


PYTHON = """#!/bin/sh
# Stands for python3, venv and pip: no network, and no wheels but one.
case "$*" in
  "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  *" wheel "*) while [ "$1" != --wheel-dir ]; do shift; done; echo wheel >"$2/iocast-0.1.0.whl" ;;
  *" install "*) for last; do :; done; echo "$last" >"$(dirname "$0")/installed"
    printf '#!/bin/sh\n' >"$(dirname "$0")/iocast"; chmod +x "$(dirname "$0")/iocast" ;;
  -c*) echo "${VERSION:-3.11}" ;;
esac
"""


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command with a python3 that stands for the real one."""
    place = tmp_path_factory.mktemp("python")
    (place / "python3").write_text(PYTHON)
    (place / "python3").chmod(0o755)

    def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        given = os.environ | {"PATH": f"{place}:{os.environ['PATH']}"} | environment
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, env=given, check=False)

    return run


@pytest.fixture(scope="module")
def archive(offline: Callable[..., subprocess.CompletedProcess[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    packed = tmp_path_factory.mktemp("packed") / "iocast.tar.gz"
    done = offline(PACKAGING / "offline.sh", "--extra", "test", packed)
    assert done.returncode == 0, done.stderr
    again = offline(PACKAGING / "offline.sh", packed)
    assert again.returncode == 2 and "nothing is overwritten" in again.stderr
    return packed


@pytest.mark.parametrize(
    "damaged",
    mostly_long(
        ["", "wheels/iocast-0.1.0.whl", "source/CMakeLists.txt", "install"],
        ["", "source/CMakeLists.txt"],
        "another file of the archive",
    ),
)
def test_an_archive_for_machines_without_internet(
    damaged: str, archive: Path, offline: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Its own Python installs it, where each file is as it was packed. legs.py offline does it with the real pip."""
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(tmp_path)], check=True)
    (place,) = tmp_path.iterdir()
    assert (place / "source/quickstart").is_file()
    if damaged:
        with (place / damaged).open("a") as file:
            file.write("#")
    other = offline(place / "install", VERSION="3.12")
    done = offline(place / "install")
    if damaged:
        assert done.returncode == 1 and damaged in done.stdout and "copy the archive again" in done.stderr
        assert not (place / ".venv").exists()
    else:
        assert other.returncode == 1 and "for Python 3.11, and python3 is 3.12" in other.stderr
        assert done.returncode == 0, done.stderr
        assert (place / ".venv/bin/installed").read_text() == "iocast[test]\n"


def test_no_script_hides_a_module_of_python() -> None:
    """The folder of a script comes first where Python looks for modules, its own included: what a neighbour named
    collections.py breaks depends on the version."""
    scripts = [
        file for folder in ("docs", "packaging", "tests", "validation") for file in (REPOSITORY / folder).rglob("*.py")
    ]
    assert len(scripts) > 100
    assert [file for file in scripts if file.stem in sys.stdlib_module_names] == []


@pytest.mark.parametrize(
    ("call", "tool", "step"), [("setup_build", "cmake", "Building"), ("setup_python", ".venv/bin/python", "Setting up")]
)
def test_set_up_says_what_it_does_before_it_does_it(call: str, tool: str, step: str, tmp_path: Path) -> None:
    """Compiling and fetching take minutes, in which nothing else is printed."""
    (tmp_path / "pyproject.toml").touch()
    stand_in = tmp_path / tool
    stand_in.parent.mkdir(parents=True, exist_ok=True)
    stand_in.write_text(f"#!/bin/sh\necho began >> {tmp_path}/printed\n")
    stand_in.chmod(0o755)
    with (tmp_path / "printed").open("a") as printed:
        done = subprocess.run(
            ["bash", "-c", f". {PACKAGING}/setup.sh; {call}"],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
            stderr=printed,
            check=False,
        )
    lines = (tmp_path / "printed").read_text().split("\n")
    assert done.returncode == 0 and lines.index("began") > 0
    assert step in "\n".join(lines[: lines.index("began")]), lines


NEWER = {
    "typing": {
        *(
            "NotRequired",
            "Required",
            "Self",
            "LiteralString",
            "Never",
            "Unpack",
            "TypeVarTuple",
            "override",
            "ReadOnly",
        ),
        *("assert_never", "assert_type", "reveal_type", "dataclass_transform", "get_overloads", "TypeAliasType"),
        "get_type_hints",  # there, but wraps what has None by default: options of verbs were not seen
    },
    "enum": {"StrEnum", "ReprEnum", "EnumType", "member", "nonmember", "verify"},
    "datetime": {"UTC"},
    "contextlib": {"chdir"},
    "hashlib": {"file_digest"},
    "itertools": {"batched"},
    "math": {"cbrt", "exp2", "sumprod", "fma"},
    "operator": {"call"},
    "asyncio": {"TaskGroup", "Runner", "timeout"},
    "tomllib": {"load", "loads"},
    "builtins": {"ExceptionGroup", "BaseExceptionGroup"},
}
"""By module, names that the earliest Python of requires-python lacks or has otherwise."""
ELSEWHERE = {"iocast/api/arguments.py": "get_type_hints"}  # of calls, where None is allowed beside a None by default


def test_the_toolkit_takes_nothing_that_the_earliest_python_lacks() -> None:
    project = (REPOSITORY / "pyproject.toml").read_text()
    assert 'requires-python = ">=3.10"' in project, "write NEWER anew for another Python"
    found = []
    for file in sorted((REPOSITORY / "iocast").rglob("*.py")):
        name = str(file.relative_to(REPOSITORY))
        for node in ast.walk(ast.parse(file.read_text(), feature_version=(3, 10))):
            if isinstance(node, ast.ImportFrom):
                taken = [(node.module or "", one.name) for one in node.names]
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                taken = [(node.value.id, node.attr)]
            elif isinstance(node, ast.Name):
                taken = [("builtins", node.id)]
            else:
                continue
            found += [
                f"{name}:{node.lineno}: {module}.{one}"
                for module, one in taken
                if one in NEWER.get(module, ()) and ELSEWHERE.get(name) != one
            ]
    assert not found, f"typing_extensions has what typing lacks: {found}"
