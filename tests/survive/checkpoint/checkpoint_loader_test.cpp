// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/checkpoint/checkpoint_loader.hpp>

#include "../../io/scratch.hpp"
#include "../run_stores.hpp"

#include <doctest/doctest.h>

#include <string>

namespace gs = gshard;
namespace detail = gs::detail;

TEST_CASE("checkpoint_loader: the store changes in load() alone; all bytes of the parts but the lengths of data are read once") {
  const scratch dir;
  gs::parameter_store saved = run_stores::make(stores::simulated({3}), 1, 7);
  CHECK(gs::checkpointer(saved, dir / "run").save());
  gs::parameter_store store = run_stores::make(stores::simulated({2}));
  const detail::disk_table disks(store.cluster().backend());
  const detail::found_steps found = detail::find_steps(store.cluster().backend(), disks, dir / "run");
  CHECK(found.finished == std::vector<detail::step_name>{{7, 0}});
  CHECK(detail::find_steps(store.cluster().backend(), disks, dir / "none").finished.empty());
  detail::checkpoint_loader loader(store, disks, dir / "run");
  const gs::manifest& m = loader.read_manifest({7, 0}, std::nullopt, false);
  CHECK(loader.misfit() == "");
  loader.read();
  CHECK(run_stores::is_step(store, 0));
  loader.load();
  CHECK(run_stores::is_step(store, 7));
  std::int64_t bytes = 0;
  for (const detail::part_info& p : m.parts) bytes += p.bytes;
  CHECK(loader.bytes_read() == bytes);
  CHECK(contains(complaint([&] { loader.read_manifest({8, 0}, std::nullopt, false); }), "cannot be opened"));
}
