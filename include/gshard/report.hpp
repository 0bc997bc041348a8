// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Plans and mistakes as text.

#include <gshard/report/auto_shard.hpp>
#include <gshard/report/describe.hpp>
#include <gshard/report/diagnostic.hpp>
#include <gshard/report/reason.hpp>
