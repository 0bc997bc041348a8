# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Headers, and with the feature compiled a static library. Debug builds of users also link its release build.
set(VCPKG_BUILD_TYPE release)
set(VCPKG_POLICY_MISMATCHED_NUMBER_OF_BINARIES enabled)

# The tree that this port is part of. A registry's port calls vcpkg_from_github instead.
cmake_path(SET SOURCE_PATH NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../../..")

vcpkg_check_features(
    OUT_FEATURE_OPTIONS FEATURE_OPTIONS
    FEATURES
        boost-mpi GSHARD_BOOST_MPI
        compiled  GSHARD_COMPILED
        hdf5      GSHARD_HDF5
        io        GSHARD_IO
        mpi       GSHARD_MPI
        onnx      GSHARD_ONNX
        survive   GSHARD_SURVIVE
        tools     GSHARD_INSTALL_COMMANDS
        xtensor   GSHARD_XTENSOR
)

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        ${FEATURE_OPTIONS}
        -DGSHARD_BLAS=OFF
        -DGSHARD_ONEDNN=OFF
        -DGSHARD_OPENMP=OFF
        -DGSHARD_BUILD_TESTS=OFF
        -DGSHARD_BUILD_EXAMPLES=OFF
        -DGSHARD_BUILD_BENCH=OFF
)

vcpkg_cmake_install()
if("compiled" IN_LIST FEATURES)
    vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/gshard)
endif()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/gshard)
vcpkg_fixup_pkgconfig()

if("tools" IN_LIST FEATURES)
    file(GLOB tools RELATIVE "${CURRENT_PACKAGES_DIR}/bin" "${CURRENT_PACKAGES_DIR}/bin/*")
    vcpkg_copy_tools(TOOL_NAMES ${tools} AUTO_CLEAN)
endif()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/licenses")
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
