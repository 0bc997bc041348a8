// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the same doctest cases on every rank. Rank 0 reports as usual, with a summary of all ranks: a case fails if it fails on any rank,
// and assertions are added up. Other ranks print only their failures, immediately, so that they are visible even if the others then wait
// forever. `--ranks=N` makes the run fail unless there are N ranks. `--threads=multiple` asks MPI for MPI_THREAD_MULTIPLE.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "keep_loaded.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

bool failed_anywhere = false;

class all_ranks_reporter : public doctest::ConsoleReporter {
 public:
  using ConsoleReporter::ConsoleReporter;

  void report_query(const doctest::QueryData& query) override {
    if (world_rank() == 0) ConsoleReporter::report_query(query);
  }

  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    ConsoleReporter::test_case_end(stats);
    failed_.push_back(stats.testCaseSuccess ? 0 : 1);
  }

  void log_assert(const doctest::AssertData& data) override {
    if (data.m_failed && world_rank() != 0) s << "[rank " << world_rank() << "]\n";
    ConsoleReporter::log_assert(data);
    s.flush();
  }

  void test_case_exception(const doctest::TestCaseException& exception) override {
    if (world_rank() != 0) s << "[rank " << world_rank() << "]\n";
    ConsoleReporter::test_case_exception(exception);
    s.flush();
    crashed_ = crashed_ || exception.is_crash;
  }

  void test_run_end(const doctest::TestRunStats& mine) override {
    if (crashed_)
      return ConsoleReporter::test_run_end(mine);  // in a signal handler; the others do not take part
    doctest::TestRunStats all = mine;
    MPI_Allreduce(MPI_IN_PLACE, failed_.data(), int(failed_.size()), MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &all.numAsserts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &all.numAssertsFailed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    all.numTestCasesFailed = 0;
    for (const int failed : failed_) all.numTestCasesFailed += unsigned(failed);
    failed_anywhere = all.numTestCasesFailed > 0;
    if (world_rank() == 0) ConsoleReporter::test_run_end(all);
  }

 private:
  std::vector<int> failed_;
  bool crashed_ = false;
};
REGISTER_REPORTER("all_ranks", 0, all_ranks_reporter);

int run(int argc, char** argv) {
  int n_ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  constexpr std::string_view option = "--ranks=";
  for (int i = 1; i < argc; ++i)
    if (const std::string_view arg = argv[i];
        arg.starts_with(option) && arg.substr(option.size()) != std::to_string(n_ranks)) {
      if (world_rank() == 0)
        std::cerr << "run with " << n_ranks << " ranks, but " << arg << " was asked for\n";
      return EXIT_FAILURE;
    }

  doctest::Context context;
  context.addFilter("reporters", "all_ranks");
  context.setOption("no-colors", true);
  context.applyCommandLine(argc, argv);
  if (world_rank() != 0) context.setOption("minimal", true);
  const int code = context.run();
  return failed_anywhere ? EXIT_FAILURE : code;
}

}  // namespace

int main(int argc, char** argv) {
  const bool multiple = std::any_of(argv, argv + argc, [](const char* arg) { return std::string_view(arg) == "--threads=multiple"; });
  int provided = 0;
  MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided);
  int code = EXIT_FAILURE;
  try {
    code = run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "[rank %d] %s\n", world_rank(), e.what());
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  } catch (...) {
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  }
  MPI_Finalize();
  return code;
}
