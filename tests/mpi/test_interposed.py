# SPDX-License-Identifier: Apache-2.0
"""Libraries that stand between the benchmark and the kernel (LD_PRELOAD: Darshan, file systems in user space) see every
call of an operation, although without them iocast-bench passes the C library by (real/system_calls.hpp)."""

import subprocess
from pathlib import Path

import pytest
from bench_runs import Run, total_counts

pytestmark = pytest.mark.usefixtures("launch_check")

COUNTING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
static atomic_long calls;
{result} {name}({parameters})
{{
  static {result} (*genuine)({parameters});
  if (!genuine)
    genuine = ({result} (*)({parameters}))dlsym(RTLD_NEXT, "{name}");
  ++calls;
  return genuine({arguments});
}}
__attribute__((destructor)) static void tell(void)
{{
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", getenv("COUNTED"), program_invocation_short_name);
  FILE* out = fopen(path, "w");
  if (out) {{
    fprintf(out, "%ld", (long)calls);
    fclose(out);
  }}
}}
"""


@pytest.mark.parametrize(
    ("name", "result", "parameters", "operations"),
    [
        ("openat", "int", "int directory, const char* path, int flags, mode_t mode", ("create", "open")),
        ("close", "int", "int file", ("create", "close")),
        ("read", "ssize_t", "int file, void* to, size_t bytes", ("read",)),
        ("write", "ssize_t", "int file, const void* from, size_t bytes", ("create",)),
        ("pread", "ssize_t", "int file, void* to, size_t bytes, off_t at", ("pread",)),
        ("pwrite", "ssize_t", "int file, const void* from, size_t bytes, off_t at", ("pwrite",)),
    ],
)
def test_a_library_that_replaces_one_function_sees_its_calls(
    run: Run, root: Path, tmp_path: Path, name: str, result: str, parameters: str, operations: tuple[str, ...]
) -> None:
    arguments = ", ".join(parameter.split()[-1] for parameter in parameters.split(", "))
    source, library = tmp_path / "counting.c", tmp_path / "counting.so"
    source.write_text(COUNTING.format(name=name, result=result, parameters=parameters, arguments=arguments))
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    workload = [
        "md-workbench",
        "--set",
        "datasets=2",
        "--set",
        "objects=700",
        "--set",
        "iterations=600",
    ]  # more calls than MPI makes to start
    if name in ("pread", "pwrite"):
        workload = ["iozone", "--set", "file_size=4MiB", "--set", "record_sizes=1KiB"]
    environment = {"LD_PRELOAD": str(library), "COUNTED": str(tmp_path)}
    done = run("--workload", *workload, "--posix.root", str(root), "--json", environment=environment)
    assert done.code == 0, done.err
    counts = total_counts(done.json)
    assert int((tmp_path / "iocast-bench").read_text()) >= sum(counts.get(kind, 0) for kind in operations) > 1000
