// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../mpi_world.hpp"
#include "scratch.hpp"

#include <mpi.h>

#include <optional>
#include <string>

/// A directory of the leader that all ranks know.
class shared_scratch {
 public:
  shared_scratch() {
    if (mpi_world::rank() == 0) {
      owned_.emplace();
      name_ = *owned_ / "";
    }
    int size = int(name_.size());
    MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
    name_.resize(std::size_t(size));
    MPI_Bcast(name_.data(), size, MPI_CHAR, 0, MPI_COMM_WORLD);
  }
  ~shared_scratch() { MPI_Barrier(MPI_COMM_WORLD); }
  std::string operator/(const std::string& name) const { return name_ + name; }
  std::size_t entries() const { return owned_ ? owned_->entries() : 0; }

 private:
  std::optional<scratch> owned_;
  std::string name_;
};
