# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The package config of a oneDNN that was built for GPUs.
set(DNNL_CPU_THREADING_RUNTIME "OMP")
set(DNNL_GPU_RUNTIME "OCL")
if(DNNL_GPU_RUNTIME STREQUAL "OCL")
  find_package(OpenCL REQUIRED)
endif()
add_library(DNNL::dnnl INTERFACE IMPORTED)
