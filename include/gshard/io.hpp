// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Files: parameters and other tensors, kept as safetensors.

#include <gshard/io/checkpoint.hpp>
#include <gshard/io/safetensors.hpp>
