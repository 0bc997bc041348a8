// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Files: parameters and other tensors as safetensors, weights of Mixtral, and tensors as NumPy files. <gshard/io/hdf5.hpp> and
// <gshard/io/plan/plan_file.hpp> are included by name.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/io/checkpoint.hpp>
#include <gshard/io/hugging_face.hpp>
#include <gshard/io/npy.hpp>
#include <gshard/io/safetensors.hpp>
