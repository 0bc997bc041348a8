// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Models: attention, Transformers, language models with beam search, and pipelines.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/models/attention.hpp>
#include <gshard/models/language_model.hpp>
#include <gshard/models/pipeline.hpp>
#include <gshard/models/ring_attention.hpp>
#include <gshard/models/rotary.hpp>
#include <gshard/models/transformer.hpp>
#include <gshard/models/decode/beam_search.hpp>
