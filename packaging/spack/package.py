# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from spack.package import *


class Gshard(CMakePackage):
    """SPMD partitioner as a header-only C++20 library: programs over whole tensors, planned at compile time."""

    homepage = "@HOMEPAGE@"
    url = "@ARCHIVE_URL@"

    license("Apache-2.0 WITH LLVM-exception")

    version("@VERSION@", sha256="@ARCHIVE_SHA256@")

    variant("mpi", default=False, description="Ranks of a communicator as devices")
    variant("boost_mpi", default=False, when="+mpi", description="Communicators of Boost.MPI")
    variant("xtensor", default=False, description="Shards as xtensor expressions")
    variant("io", default=False, description="Checkpoints as safetensors, reports as JSON and HTML")
    variant("hdf5", default=False, description="Tensors as datasets of HDF5 files")
    variant("survive", default=False, when="+io", description="Checkpoints of long runs, with signatures")
    variant("onnx", default=False, when="+io", description="ONNX models as programs")
    variant("blas", default=False, description="Matrix products by a BLAS with its C interface")
    variant("onednn", default=False, description="Matrix products by oneDNN")
    variant("openmp", default=False, description="Several threads per process")
    variant("compiled", default=False, description="Backends, runtime and kernels in a static library")
    variant("tools", default=False, when="+io", description="The commands gshard-plan and gshard-plan-run")

    depends_on("cxx", type="build")
    depends_on("cmake@3.24:", type="build")
    depends_on("eigen@3.4:", type=("build", "link"))
    depends_on("mpi", when="+mpi")
    depends_on("boost@1.74:+mpi+serialization", when="+boost_mpi")
    depends_on("xtensor@0.24:", when="+xtensor")
    depends_on("nlohmann-json@3.9:", when="+io")
    depends_on("xxhash@0.8:", when="+io")
    depends_on("hdf5@1.10:+mpi", when="+hdf5+mpi")
    depends_on("hdf5@1.10:~mpi", when="+hdf5~mpi")
    depends_on("openssl@1.1:", when="+survive")
    depends_on("protozero@1.7:", when="+onnx")
    depends_on("openblas@0.3.20:", when="+blas")
    depends_on("onednn@2.6:", when="+onednn")
    depends_on("cli11@2:", type="build", when="+tools")

    conflicts("%gcc@:11", msg="the compiler runs the planner: g++ 12 or newer")
    conflicts("%clang@:15", msg="the compiler runs the planner: clang 16 or newer")

    def cmake_args(self):
        args = [self.define(f"GSHARD_BUILD_{part}", False) for part in ("TESTS", "EXAMPLES", "BENCH")]
        args += [
            self.define_from_variant(f"GSHARD_{name.upper()}", name)
            for name in ("mpi", "boost_mpi", "xtensor", "io", "hdf5", "survive", "onnx", "blas", "onednn", "openmp")
        ]
        args += [self.define_from_variant("GSHARD_COMPILED", "compiled"), self.define_from_variant("GSHARD_INSTALL_COMMANDS", "tools")]
        return args
