// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The MPI datatypes of element types.

#include <gshard/cluster/mpi_communicator.hpp>
#include <gshard/core/ir/dtype.hpp>

namespace gshard { inline namespace v0 {

/// mpi_type<T>(): the MPI datatype of an element of a tensor, for the application's own messages. half and bfloat16 are MPI_UINT16_T: their
/// bits can be moved, not added.
/// Communicates: nothing.
/// Compile time: an element type of tensors.
/// Throws: nothing.
/// @see on_mpi
template <class T>
MPI_Datatype mpi_type() {
  switch (dtype_of<T>) {
    case dtype::f32: return MPI_FLOAT;
    case dtype::f64: return MPI_DOUBLE;
    case dtype::i32: return MPI_INT32_T;
    case dtype::i64: return MPI_INT64_T;
    case dtype::c64: return MPI_C_FLOAT_COMPLEX;
    case dtype::c128: return MPI_C_DOUBLE_COMPLEX;
    case dtype::boolean: return MPI_C_BOOL;
    case dtype::f16:
    case dtype::bf16: return MPI_UINT16_T;
    case dtype::count_: break;
  }
  return MPI_DATATYPE_NULL;
}

}}  // namespace gshard::v0
