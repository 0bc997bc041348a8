// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The verbs on tensors, outside of programs.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/eager/attention.hpp>
#include <gshard/eager/broadcast.hpp>
#include <gshard/eager/compare.hpp>
#include <gshard/eager/einsum.hpp>
#include <gshard/eager/evaluate.hpp>
#include <gshard/eager/map.hpp>
#include <gshard/eager/new_dims.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/eager/verbs.hpp>
#include <gshard/eager/wrong_calls.hpp>
