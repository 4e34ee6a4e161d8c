# SPDX-License-Identifier: Apache-2.0
"""spack repo add packaging/spack && spack install iocast: builds the checkout that this file is part of."""

import pathlib

from spack.package import *


class Iocast(CMakePackage):
    """Measures a storage system with many MPI ranks, simulates it as a queueing network, and forecasts its throughput
    and latency distribution at other scales."""

    git = pathlib.Path(__file__).resolve().parents[4].as_uri()
    license("Apache-2.0")

    version("main", commit="HEAD")

    variant("bench", default=True, description="iocast-bench, the MPI benchmark")
    for service in ("s3", "postgresql", "mongodb"):
        variant(service, default=False, description=f"backend {service} of iocast-bench")
    variant("cephfs", default=False, description="backend cephfs of iocast-bench, with the system's libcephfs")
    variant("nfs", default=False, description="backend nfs of iocast-bench, with the system's libnfs")
    variant("sim", default=True, description="iocast-sim, the simulator")
    variant("python", default=True, description="the toolkit: calibrate, predict, report, import")

    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("git", type="build")
    depends_on("yaml-cpp@0.6:")
    depends_on("nlohmann-json@3.9:")
    depends_on("fmt@8:")
    depends_on("cli11@2:")
    depends_on("zlib-api")
    depends_on("boost@1.74:")
    depends_on("random123")
    depends_on("hdf5")
    depends_on("mpi", when="+bench")
    depends_on("curl", when="+s3")
    depends_on("openssl", when="+s3")
    depends_on("postgresql", when="+postgresql")
    depends_on("mongo-c-driver@1.17:1", when="+mongodb")
    depends_on("simgrid@3.32:", when="+sim")

    generator("ninja")

    # The packages of PyPI that the toolkit needs, as pyproject.toml names them.
    with when("+python"):
        extends("python@3.10:")
        depends_on("py-pip", type="build")
        depends_on("py-hatchling", type="build")
        for package in ("numpy", "scipy", "pyyaml", "typer", "rich", "jinja2", "altair", "psutil", "pyarrow"):
            depends_on(f"py-{package}", type=("build", "run"))

    def cmake_args(self):
        return [
            self.define_from_variant("IOCAST_REAL", "bench"),
            self.define_from_variant("IOCAST_SIM", "sim"),
            self.define("IOCAST_TESTS", False),
            self.define_from_variant("IOCAST_CEPHFS", "cephfs"),
            self.define_from_variant("IOCAST_NFS", "nfs"),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_CURL", "~s3" in self.spec),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_PostgreSQL", "~postgresql" in self.spec),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_mongoc-1.0", "~mongodb" in self.spec),
        ]

    @run_after("install", when="+python")
    def install_toolkit(self):
        # hdrhistogram and vl-convert-python are no packages of Spack, msgspec there is older: pip fetches them.
        which("python3")("-m", "pip", "install", f"--prefix={self.prefix}", "--no-warn-script-location", ".")
        Executable(f"{self.prefix.bin}/iocast")("manual", "--out", self.prefix.share.man)
