// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gshard: to_local_blocks writes to blocks that have the tensor's element type and are not const
#include <gshard/exec/tensor/local_blocks.hpp>

#include <vector>

namespace gs = gshard;

#if defined(MUST_FAIL)
using block = gs::local_block<const float>;
#else
using block = gs::local_block<float>;
#endif
void write(const gs::tensor<float, gs::P<"x">>& t, const std::vector<block>& blocks) { gs::to_local_blocks(t, blocks); }
