# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout


class TestPackageConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires(self.tested_reference_str)

    def _has(self, option):
        return bool(self.dependencies["gshard"].options.get_safe(option))

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["WITH_MPI"] = self._has("mpi")
        toolchain.cache_variables["PARTS"] = ";".join(part for part in ("compiled", "boost_mpi", "xtensor", "io") if self._has(part))
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        program = os.path.join(self.cpp.build.bindir, "test_package")
        self.run(program, env="conanrun")
        if self._has("mpi"):
            os.environ.setdefault("OMPI_MCA_rmaps_base_oversubscribe", "1")  # also on one core
            self.run(f"mpiexec -n 2 {program} ranks", env="conanrun")
