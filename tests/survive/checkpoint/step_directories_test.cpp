// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/checkpoint/step_directories.hpp>

#include "../../io/scratch.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace gs = gshard;
namespace fs = std::filesystem;
namespace detail = gs::detail;
using detail::step_name;

TEST_CASE("step_name: text and order") {
  CHECK(step_name{120, 0}.text() == "step-0000000120");
  CHECK(step_name{4294967295u, 2}.text() == "step-4294967295.2");
  for (const step_name& n : {step_name{0, 0}, step_name{120, 0}, step_name{120, 1}, step_name{4294967295u, 4294967295u}})
    CHECK(step_name::parse(n.text()) == n);
  CHECK(step_name{120, 0} < step_name{120, 1});
  CHECK(step_name{120, 9} < step_name{121, 0});
  for (const char* other :
       {"", "step-", "step-120", "step-00000000120", "step-0000000120.", "step-0000000120.0", "step-0000000120.01", "step-000000012x",
        "step-9999999999", "step-0000000120.1.2", "step-0000000120/..", "Step-0000000120", "step--000000120", "step-+000000120"})
    CHECK_FALSE(step_name::parse(other).has_value());
}

TEST_CASE("step directories: finished and unfinished ones; what is_checkpoint_file knows") {
  const scratch dir;
  const detail::directory in = detail::directory::at(dir / "");
  in.made_sub("step-0000000002").replace("manifest.json", "{\"sha256\":\"");
  in.made_sub("step-0000000001");
  in.made_sub("other");
  in.made_sub("step-0000000005").replace("manifest.sig", "ed25519 00");
  CHECK(detail::find_steps(in).finished == std::vector<step_name>{{2, 0}});
  in.replace("step-0000000003", "a file");  // from here on, a former checkpoint is possible
  fs::create_symlink(dir / "step-0000000002", dir / "step-0000000004");
  REQUIRE(::mkfifo((dir / "step-0000000006").c_str(), 0600) == 0);
  in.made_sub("step-0000000007").made_sub("manifest.json");
  in.made_sub("step-0000000008").link("manifest.json", "/dev/zero");
  in.made_sub("step-0000000009").link("manifest.json", "nowhere");
  in.made_sub("step-0000000010");
  REQUIRE(::mkfifo((dir / "step-0000000010/manifest.json").c_str(), 0600) == 0);
  const detail::found_steps found = detail::find_steps(in);
  CHECK(found.finished == std::vector<step_name>{{2, 0}, {3, 0}, {4, 0}, {6, 0}, {7, 0}, {8, 0}, {9, 0}, {10, 0}});
  CHECK(found.unfinished == std::vector<step_name>{{1, 0}, {5, 0}});

  const auto is = [&](const std::string& name, const std::string& content) {
    set_content(dir / name, content);
    return detail::is_checkpoint_file(in, name);
  };
  const std::string length(8, '\0');
  CHECK(is("part-00000.bin", ""));
  CHECK(is("part-00000.bin", length + std::string(detail::part_begin) + ",..."));
  CHECK(is("part-00000.bin", std::string(100, '\0')));
  CHECK_FALSE(is("part-00000.bin", "text of a user"));
  CHECK_FALSE(is("part-0.bin", ""));
  CHECK_FALSE(is("part-00000.bin.txt", ""));
  CHECK(is("manifest.json", "{\"sha256\":\"0"));
  CHECK_FALSE(is("manifest.json", "{}"));
  CHECK(is("manifest.json.tmp-0123456789abcdef", "anything"));
  CHECK_FALSE(is("manifest.json.tmp", ""));
  CHECK(is("manifest.sig", "ed25519 00"));
  CHECK_FALSE(is("manifest.sig", "mine"));
  CHECK_FALSE(is("notes.txt", ""));
}

TEST_CASE("step directories: the end marker and the link are not put over files of the user") {
  const scratch dir;
  const detail::directory in = detail::directory::at(dir / "");
  detail::write_finished(in, 120);
  CHECK(content_of(dir / "finished") == "finished at step 120\n");
  detail::write_finished(in, 121);
  detail::remove_finished(in);
  CHECK_FALSE(fs::exists(dir / "finished"));
  set_content(dir / "finished", "mine");
  detail::remove_finished(in);
  CHECK(contains(complaint([&] { detail::write_finished(in, 1); }), "it is not overwritten"));
  CHECK(content_of(dir / "finished") == "mine");
  CHECK(detail::point_latest(in, {1, 0}));
  CHECK(detail::point_latest(in, {2, 0}));
  CHECK(fs::read_symlink(dir / "latest") == "step-0000000002");
  in.link("latest", "elsewhere");
  CHECK_FALSE(detail::point_latest(in, {3, 0}));
  fs::remove(dir / "latest");
  set_content(dir / "latest", "mine");
  CHECK_FALSE(detail::point_latest(in, {3, 0}));
  CHECK(content_of(dir / "latest") == "mine");
  in.link("latest.tmp-0123456789abcdef", "step-0000000002");
  set_content(dir / "latest.tmp-0123456789abcdee", "a file of the user");
  set_content(dir / "finished.tmp-0123456789abcdef", "left by a killed process");
  detail::remove_temporaries(in);
  CHECK(in.names() == std::vector<std::string>{"finished", "latest", "latest.tmp-0123456789abcdee"});
}

// A thread removes a failed save, maybe while another process looks for checkpoints.
TEST_CASE("step directories: those that are removed meanwhile are not found") {
  const scratch dir;
  const detail::directory in = detail::directory::at(dir / "");
  in.made_sub("step-0000000001").replace("manifest.json", "{\"sha256\":\"");
  std::atomic<bool> ends = false;
  std::thread other([&] {
    while (!ends) {
      fs::create_directory(dir / "step-0000000002");
      fs::remove(dir / "step-0000000002");
    }
  });
  for (int i = 0; i < 2000; ++i) {
    const std::string problem = complaint([&] { CHECK(detail::find_steps(in).finished == std::vector<step_name>{{1, 0}}); });
    CHECK(problem == "");
  }
  ends = true;
  other.join();
}
