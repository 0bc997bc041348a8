// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Training: optimizers, gradient accumulation, clipping and schedules of the rate.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/train/accumulate.hpp>
#include <gshard/train/adafactor.hpp>
#include <gshard/train/adam.hpp>
#include <gshard/train/clip.hpp>
#include <gshard/train/schedule.hpp>
