// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Plans as text.

#include <gshard/report/describe.hpp>
