// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An operation outside of a program on a tensor with a device order.
// expect: gshard: operations on tensors outside of programs do not take an order of the devices \(device_order\)
// expect: actual_type<.*on_devices<1, 0>
#include <gshard/eager/verbs.hpp>

namespace gs = gshard;
using gs::none, gs::P;

#if defined(MUST_FAIL)
using layout = P<"x", none, gs::device_order<1, 0>>;
#else
using layout = P<"x", none>;
#endif

void soften(const gs::tensor<float, layout>& t) { gs::softmax(t); }
