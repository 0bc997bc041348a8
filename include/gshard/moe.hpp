// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Mixture of experts: routing, the layer, and the placement of experts on devices.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

// Routing.
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/chunks.hpp>
#include <gshard/moe/routing/expert_groups.hpp>
#include <gshard/moe/routing/dropless.hpp>
#include <gshard/moe/routing/expert_replicas.hpp>

// Layers.
#include <gshard/moe/layer/moe.hpp>
#include <gshard/moe/layer/router.hpp>
#include <gshard/moe/layer/swiglu.hpp>

// Placement.
#include <gshard/moe/placement/expert_placement.hpp>
#include <gshard/moe/placement/placed_experts.hpp>
