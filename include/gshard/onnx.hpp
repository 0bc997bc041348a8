// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// ONNX models as programs: read, imported on a mesh, loaded, sharded and checked against test data. Compile the runtime and the kernels
// once (`gshard::compiled`), as for all run-time programs.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/onnx/file/read_model.hpp>
#include <gshard/onnx/program/check_model.hpp>
#include <gshard/onnx/program/export_cpp.hpp>
#include <gshard/onnx/program/find_shardings.hpp>
#include <gshard/onnx/program/import_program.hpp>
#include <gshard/onnx/program/write_annotations.hpp>
#include <gshard/runtime.hpp>
