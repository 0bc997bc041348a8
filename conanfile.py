# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conan 2 recipe. CMake users get gshard's own package config, users of other generators the components of package_info()."""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import load, rmdir
from conan.tools.scm import Version

required_conan_version = ">=2.1"


class GshardConan(ConanFile):
    name = "gshard"
    description = "SPMD partitioner as a C++20 library: programs over whole tensors, planned at compile time"
    license = "Apache-2.0 WITH LLVM-exception"
    topics = ("mpi", "tensor", "sharding", "spmd", "mixture-of-experts", "header-only")
    settings = "os", "arch", "compiler", "build_type"
    # Off unless asked for, MPI as well: a cluster brings its own (a profile's [platform_requires] names it).
    # oneDNN is the system's, OpenMP the compiler's; the others are packages. `compiled` builds the library gshard::compiled.
    options = {name: [True, False] for name in ("mpi", "boost_mpi", "xtensor", "io", "hdf5", "survive", "onnx", "blas", "onednn", "openmp", "compiled")}
    default_options = {name: False for name in options}
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*", "include/*"
    no_copy_source = True

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include", "gshard", "core", "base", "version.hpp"))
        self.version = ".".join(re.findall(r"^#define GSHARD_VERSION_[A-Z]+ (\d+)$", header, re.MULTILINE))

    def configure(self):
        self.package_type = "static-library" if self.options.compiled else "header-library"
        if self.options.boost_mpi:
            self.options["boost"].without_mpi = False
        if self.options.hdf5 and self.options.mpi:
            self.options["hdf5"].parallel = True
            self.options["hdf5"].enable_cxx = False  # not with MPI

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        def requires(reference):
            self.requires(reference, transitive_headers=True, transitive_libs=True)  # public headers include them

        requires("eigen/[>=3.4 <6]")
        if self.options.mpi:
            requires("openmpi/[>=4.1 <6]")
        if self.options.boost_mpi:
            requires("boost/[>=1.74 <2]")
        if self.options.xtensor:
            requires("xtensor/[>=0.24 <1]")
        if self.options.io:
            requires("nlohmann_json/[>=3.9 <4]")
            requires("xxhash/[>=0.8 <1]")
        if self.options.hdf5:
            requires("hdf5/[>=1.10 <2]")
        if self.options.survive:
            requires("openssl/[>=1.1 <4]")
        if self.options.onnx:
            requires("protozero/[>=1.7 <2]")
        if self.options.blas:
            requires("openblas/[>=0.3.20 <1]")

    def package_id(self):
        # Headers serve any compiler. The package config differs with the options.
        if not self.info.options.compiled:
            self.info.settings.clear()
            self.info.requires.clear()

    def validate(self):
        check_min_cppstd(self, 20)
        oldest = {"gcc": "12", "clang": "16", "apple-clang": "15"}.get(str(self.settings.compiler))
        if oldest is None:
            raise ConanInvalidConfiguration("gshard needs g++ or clang")
        if Version(self.settings.compiler.version) < oldest:
            raise ConanInvalidConfiguration(f"gshard needs {self.settings.compiler} {oldest} or newer")
        if self.options.boost_mpi and not self.options.mpi:
            raise ConanInvalidConfiguration("gshard's option boost_mpi needs the option mpi")
        if self.options.survive and not self.options.io:
            raise ConanInvalidConfiguration("gshard's option survive needs the option io")
        if self.options.onnx and not self.options.io:
            raise ConanInvalidConfiguration("gshard's option onnx needs the option io")

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "EXAMPLES", "BENCH"):
            toolchain.cache_variables[f"GSHARD_BUILD_{part}"] = False
        toolchain.cache_variables["GSHARD_INSTALL"] = True
        for name, value in self.options.items():
            toolchain.cache_variables[f"GSHARD_{name.upper()}"] = "ON" if value == "True" else "OFF"
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        if self.options.compiled:
            cmake.build(target="gshard_compiled")

    def package(self):
        CMake(self).install()
        for folder in ("share", "lib"):
            rmdir(self, os.path.join(self.package_folder, folder, "pkgconfig"))  # PkgConfigDeps writes them from package_info()

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")

        # Packages of the system, by [platform_requires], are no dependencies here: their users have them in the search paths.
        packages = {dependency.ref.name for dependency in self.dependencies.direct_host.values()}

        def component(name, *requires):
            info = self.cpp_info.components[name]
            info.set_property("pkg_config_name", "gshard" if name == "gshard" else f"gshard-{name.replace('_', '-')}")
            info.bindirs, info.libdirs = [], []
            info.requires = [r for r in requires if "::" not in r or r.split("::")[0] in packages]
            return info

        core = component("core")
        core.builddirs = [os.path.join("share", "cmake", "gshard")]
        if self.settings.compiler == "gcc":
            core.cxxflags = ["-fconstexpr-ops-limit=100000000000", "-fconstexpr-loop-limit=100000000", "-ftoplevel-reorder"]
        else:
            core.cxxflags = ["-fconstexpr-steps=2000000000"]
        component("ops", "core")
        component("plan", "ops")

        run = component("exec", "core", "eigen::eigen", "openblas::openblas")
        for name in ("blas", "onednn", "openmp"):
            run.defines.append(f"GSHARD_HAS_{name.upper()}={int(bool(self.options.get_safe(name)))}")
        run.system_libs = ["pthread"] if self.settings.os in ("Linux", "FreeBSD") else []
        if self.options.onednn:
            run.system_libs.append("dnnl")
        if self.options.openmp:
            run.cxxflags = run.sharedlinkflags = run.exelinkflags = ["-fopenmp"]
        cluster = component("cluster", "exec", "openmpi::openmpi")
        cluster.defines = [f"GSHARD_HAS_MPI={int(bool(self.options.mpi))}"]
        if self.options.mpi:
            cluster.defines += ["OMPI_SKIP_MPICXX", "MPICH_SKIP_MPICXX"]
        for name in ("eager", "moe", "train", "sim"):
            component(name, "ops", "exec")
        component("models", "moe", "train")
        component("runtime", "moe")
        component("testing", "sim")
        component("gshard", "plan", "cluster", "eager", "models", "runtime", "testing")

        if self.options.compiled:
            compiled = component("compiled", "gshard")
            compiled.libs, compiled.libdirs = ["gshard"], ["lib"]
            compiled.defines = ["GSHARD_COMPILED_KERNELS=1"]
        if self.options.boost_mpi:
            component("boost_mpi", "gshard", "boost::mpi", "boost::serialization")
        if self.options.xtensor:
            component("xtensor", "gshard", "xtensor::xtensor")
        if self.options.io:
            component("io", "gshard", "nlohmann_json::nlohmann_json", "xxhash::xxhash")
        if self.options.hdf5:
            component("hdf5", "gshard", "hdf5::hdf5_c")
        if self.options.survive:
            component("survive", "io", "openssl::crypto")
        if self.options.onnx:
            component("onnx", "io", "protozero::protozero")
