# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In place of a package of Conan Center: the targets that its recipe makes, with what is installed."""

import os

from conan import ConanFile


def paths(name):
    return [path for path in os.environ.get(name, "").split("|") if path]


class InstalledConan(ConanFile):
    options = {"without_mpi": [True, False]}  # as in Boost's recipe
    default_options = {"without_mpi": False}

    def package_info(self):
        def part(name, target, includes=(), libraries=()):
            info = self.cpp_info.components[name]
            info.set_property("cmake_target_name", target)
            info.includedirs, info.bindirs, info.libdirs = list(includes), [], []
            info.system_libs = list(libraries)
            return info

        if self.name == "eigen":
            self.cpp_info.set_property("cmake_file_name", "Eigen3")
            part("eigen3", "Eigen3::Eigen", paths("STUB_EIGEN_INCLUDES"))
        elif self.name == "openmpi":
            self.cpp_info.set_property("cmake_find_mode", "both")
            self.cpp_info.set_property("cmake_file_name", "MPI")
            libraries = paths("STUB_MPI_LIBRARIES")
            info = part("ompi-c", "MPI::MPI_C", paths("STUB_MPI_INCLUDES"))
            info.libs = [os.path.splitext(os.path.basename(path))[0][3:] for path in libraries]
            info.libdirs = [os.path.dirname(path) for path in libraries]
        elif self.name == "boost":
            self.cpp_info.set_property("cmake_file_name", "Boost")
            part("serialization", "Boost::serialization", libraries=["boost_serialization"])
            part("mpi", "Boost::mpi", libraries=["boost_mpi"]).requires = ["serialization"]
        elif self.name == "xtensor":
            part("xtensor", "xtensor")
        elif self.name == "nlohmann_json":
            part("nlohmann_json", "nlohmann_json::nlohmann_json")
        elif self.name == "xxhash":
            self.cpp_info.set_property("cmake_file_name", "xxHash")
            part("libxxhash", "xxHash::xxhash", libraries=["xxhash"])
