# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get, save
from conan.tools.scm import Version
import os

required_conan_version = ">=2.1"


class GshardConan(ConanFile):
    name = "gshard"
    description = "SPMD partitioner as a C++20 library: programs over whole tensors, planned at compile time"
    license = "Apache-2.0 WITH LLVM-exception"
    url = "https://github.com/conan-io/conan-center-index"
    homepage = "@HOMEPAGE@"
    topics = ("mpi", "tensor", "sharding", "spmd", "mixture-of-experts", "header-only")
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "mpi": [True, False],
        "boost_mpi": [True, False],
        "xtensor": [True, False],
        "io": [True, False],
        "hdf5": [True, False],
        "survive": [True, False],
        "onnx": [True, False],
        "blas": [True, False],
        "openmp": [True, False],
        "compiled": [True, False],
    }
    default_options = {
        "mpi": False,
        "boost_mpi": False,
        "xtensor": False,
        "io": False,
        "hdf5": False,
        "survive": False,
        "onnx": False,
        "blas": False,
        "openmp": False,
        "compiled": False,
    }
    no_copy_source = True

    def configure(self):
        self.package_type = "static-library" if self.options.compiled else "header-library"
        if self.options.boost_mpi:
            self.options["boost"].without_mpi = False
        if self.options.hdf5 and self.options.mpi:
            self.options["hdf5"].parallel = True
            self.options["hdf5"].enable_cxx = False  # not with MPI

    def layout(self):
        cmake_layout(self, src_folder="src")

    def requirements(self):
        # Public headers include all of them
        def requires(reference):
            self.requires(reference, transitive_headers=True, transitive_libs=True)

        requires("eigen/3.4.0")
        if self.options.mpi:
            requires("openmpi/4.1.8")
        if self.options.boost_mpi:
            requires("boost/1.91.0")
        if self.options.xtensor:
            requires("xtensor/0.27.1")
        if self.options.io:
            requires("nlohmann_json/3.11.3")  # xtensor's version
            requires("xxhash/0.8.3")
        if self.options.hdf5:
            requires("hdf5/1.14.6")
        if self.options.survive:
            requires("openssl/[>=1.1 <4]")
        if self.options.onnx:
            requires("protozero/1.7.1")
        if self.options.blas:
            requires("openblas/0.3.30")

    def package_id(self):
        if not self.info.options.compiled:
            self.info.clear()

    def validate(self):
        check_min_cppstd(self, 20)
        # The compiler runs the planner in constant expressions
        minimum_version = {"gcc": "12", "clang": "16", "apple-clang": "15"}.get(str(self.settings.compiler))
        if minimum_version is None:
            raise ConanInvalidConfiguration(f"{self.ref} needs g++ or clang")
        if Version(self.settings.compiler.version) < minimum_version:
            raise ConanInvalidConfiguration(f"{self.ref} needs {self.settings.compiler} {minimum_version} or newer")
        if self.options.boost_mpi:
            if not self.options.mpi:
                raise ConanInvalidConfiguration(f"{self.ref}: the option boost_mpi needs the option mpi")
            if self.dependencies["boost"].options.get_safe("without_mpi", False):
                raise ConanInvalidConfiguration(f"{self.ref}: the option boost_mpi needs boost/*:without_mpi=False")
        if self.options.survive and not self.options.io:
            raise ConanInvalidConfiguration(f"{self.ref}: the option survive needs the option io")
        if self.options.onnx and not self.options.io:
            raise ConanInvalidConfiguration(f"{self.ref}: the option onnx needs the option io")

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def generate(self):
        if not self.options.compiled:
            return
        toolchain = CMakeToolchain(self)
        for part in ("BUILD_TESTS", "BUILD_EXAMPLES", "BUILD_BENCH", "ONEDNN"):
            toolchain.cache_variables[f"GSHARD_{part}"] = False
        for name, value in self.options.items():
            toolchain.cache_variables[f"GSHARD_{name.upper()}"] = value == "True"
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        if self.options.compiled:
            cmake = CMake(self)
            cmake.configure()
            cmake.build(target="gshard_compiled")

    @property
    def _kernels_module(self):
        return os.path.join("lib", "cmake", "conan-official-gshard-kernels.cmake")

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        include = os.path.join(self.package_folder, "include")
        copy(self, "*", os.path.join(self.source_folder, "include"), include)
        texts = os.path.join(include, "gshard", "io", "report", "page_texts.hpp")
        self.run(f'cmake "-DOUTPUT={texts}" -P "{os.path.join(self.source_folder, "cmake", "embed_pages.cmake")}"')
        for source in ("runtime.cpp", "kernels.cpp"):
            copy(self, source, os.path.join(self.source_folder, "cmake"), os.path.join(self.package_folder, "res"))
        copy(self, "libgshard.a", self.build_folder, os.path.join(self.package_folder, "lib"), keep_path=False)
        # A target with sources, which each target that links it compiles, as upstream's
        save(self, os.path.join(self.package_folder, self._kernels_module), """\
if(NOT TARGET gshard::kernels)
  add_library(gshard::kernels INTERFACE IMPORTED)
  set_target_properties(gshard::kernels PROPERTIES
    INTERFACE_SOURCES "${CMAKE_CURRENT_LIST_DIR}/../../res/runtime.cpp;${CMAKE_CURRENT_LIST_DIR}/../../res/kernels.cpp"
    INTERFACE_COMPILE_DEFINITIONS GSHARD_COMPILED_KERNELS=1
    INTERFACE_LINK_LIBRARIES gshard::gshard)
endif()
""")

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "gshard")
        # gshard::gshard is a component, which does without the others
        self.cpp_info.set_property("cmake_target_name", "gshard::gshard-all-do-not-use")
        self.cpp_info.set_property("cmake_build_modules", [self._kernels_module])

        def component(name, requires):
            info = self.cpp_info.components[name]
            info.set_property("cmake_target_name", f"gshard::{name}")
            info.set_property("pkg_config_name", "gshard" if name == "gshard" else f"gshard-{name.replace('_', '-')}")
            info.bindirs = []
            info.libdirs = []
            info.requires = requires
            return info

        core = component("core", [])
        if self.settings.compiler == "gcc":
            core.cxxflags = ["-fconstexpr-ops-limit=100000000000", "-fconstexpr-loop-limit=100000000", "-ftoplevel-reorder"]
        else:
            core.cxxflags = ["-fconstexpr-steps=2000000000"]
        component("ops", ["core"])
        component("plan", ["ops"])

        run = component("exec", ["core", "eigen::eigen"])
        for library in ("blas", "onednn", "openmp"):
            run.defines.append(f"GSHARD_HAS_{library.upper()}={int(bool(self.options.get_safe(library)))}")
        if self.settings.os in ["Linux", "FreeBSD"]:
            run.system_libs.append("pthread")
        if self.options.blas:
            run.requires.append("openblas::openblas")
        if self.options.openmp:
            run.cxxflags = ["-fopenmp"]
            run.sharedlinkflags = ["-fopenmp"]
            run.exelinkflags = ["-fopenmp"]
        cluster = component("cluster", ["exec"])
        cluster.defines.append(f"GSHARD_HAS_MPI={int(bool(self.options.mpi))}")
        if self.options.mpi:
            cluster.requires.append("openmpi::openmpi")
            cluster.defines.extend(["OMPI_SKIP_MPICXX", "MPICH_SKIP_MPICXX"])
        for library in ("eager", "moe", "train", "sim"):
            component(library, ["ops", "exec"])
        component("models", ["moe", "train"])
        component("runtime", ["moe"])
        component("testing", ["sim"])
        component("gshard", ["plan", "cluster", "eager", "models", "runtime", "testing"])

        if self.options.compiled:
            compiled = component("compiled", ["gshard"])
            compiled.libs = ["gshard"]
            compiled.libdirs = ["lib"]
            compiled.defines = ["GSHARD_COMPILED_KERNELS=1"]
        if self.options.boost_mpi:
            component("boost_mpi", ["gshard", "boost::mpi", "boost::serialization"])
        if self.options.xtensor:
            component("xtensor", ["gshard", "xtensor::xtensor"])
        if self.options.io:
            component("io", ["gshard", "nlohmann_json::nlohmann_json", "xxhash::xxhash"])
        if self.options.hdf5:
            component("hdf5", ["gshard", "hdf5::hdf5_c"])
        if self.options.survive:
            component("survive", ["io", "openssl::crypto"])
        if self.options.onnx:
            component("onnx", ["io", "protozero::protozero"])
