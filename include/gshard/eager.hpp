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
#include <gshard/eager/lookup.hpp>
#include <gshard/eager/map.hpp>
#include <gshard/eager/random.hpp>
#include <gshard/eager/reduce.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/eager/rows.hpp>
#include <gshard/eager/shape.hpp>
#include <gshard/eager/wrong_calls.hpp>
