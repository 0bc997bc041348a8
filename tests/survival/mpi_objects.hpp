// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Counts the existing MPI objects, by the profiling interface: each function is MPI's, with a counter. One source includes it.

#include <mpi.h>

#include <atomic>

/// Communicators, groups, windows and requests that were created and are neither freed nor complete.
inline std::atomic<long> mpi_objects = 0;

namespace survival {
inline int made(int code) {
  mpi_objects += code == MPI_SUCCESS ? 1 : 0;
  return code;
}
inline int ended(int code) {
  mpi_objects -= code == MPI_SUCCESS ? 1 : 0;
  return code;
}
}  // namespace survival

extern "C" {
int MPI_Comm_dup(MPI_Comm a, MPI_Comm* b) { return survival::made(PMPI_Comm_dup(a, b)); }
int MPI_Comm_create_group(MPI_Comm a, MPI_Group g, int tag, MPI_Comm* b) { return survival::made(PMPI_Comm_create_group(a, g, tag, b)); }
int MPI_Comm_split_type(MPI_Comm a, int type, int key, MPI_Info info, MPI_Comm* b) {
  return survival::made(PMPI_Comm_split_type(a, type, key, info, b));
}
int MPI_Comm_free(MPI_Comm* a) { return survival::ended(PMPI_Comm_free(a)); }
int MPI_Comm_group(MPI_Comm a, MPI_Group* g) { return survival::made(PMPI_Comm_group(a, g)); }
int MPI_Group_incl(MPI_Group g, int n, const int ranks[], MPI_Group* h) { return survival::made(PMPI_Group_incl(g, n, ranks, h)); }
int MPI_Group_free(MPI_Group* g) { return survival::ended(PMPI_Group_free(g)); }
int MPI_Win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm a, void* memory, MPI_Win* w) {
  return survival::made(PMPI_Win_allocate_shared(bytes, unit, info, a, memory, w));
}
int MPI_Win_free(MPI_Win* w) { return survival::ended(PMPI_Win_free(w)); }
int MPI_Isend(const void* data, int n, MPI_Datatype type, int to, int tag, MPI_Comm a, MPI_Request* r) {
  return survival::made(PMPI_Isend(data, n, type, to, tag, a, r));
}
int MPI_Irecv(void* data, int n, MPI_Datatype type, int from, int tag, MPI_Comm a, MPI_Request* r) {
  return survival::made(PMPI_Irecv(data, n, type, from, tag, a, r));
}
int MPI_Wait(MPI_Request* r, MPI_Status* status) {
  const bool alive = *r != MPI_REQUEST_NULL;
  const int code = PMPI_Wait(r, status);
  mpi_objects -= alive && *r == MPI_REQUEST_NULL ? 1 : 0;
  return code;
}
int MPI_Test(MPI_Request* r, int* done, MPI_Status* status) {
  const bool alive = *r != MPI_REQUEST_NULL;
  const int code = PMPI_Test(r, done, status);
  mpi_objects -= alive && *r == MPI_REQUEST_NULL ? 1 : 0;
  return code;
}
}
