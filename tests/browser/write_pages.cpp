// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// write_pages <folder>: pages of made-up runs for check_page.py.
#include <gshard/io/report/page.hpp>

#include "../sim/report/sample_run.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace {

void write(const std::filesystem::path& path, const sample::run& run, const std::vector<gshard::sweep_row>& sweep = {}) {
  std::ofstream(path, std::ios::binary) << gshard::run_page(run.record, sample::plan, run.sizes, sweep);
}

}  // namespace

int main(int, char** argument) {
  const std::filesystem::path folder = argument[1];
  std::filesystem::create_directories(folder);
  write(folder / "small.html", sample::small(), sample::sweep());
  sample::run cube = sample::make(8, 6, {2, 3, 4});
  for (int d = 0; d < 48; ++d) cube.record.chip_of.push_back((47 - d) / 2);
  write(folder / "cube.html", cube);

  // Names that could break out of their HTML element, a device with too little memory, and nothing to draw.
  sample::run hostile = sample::make(3, 1, {2, 2});
  gshard::run_record& run = hostile.record;
  run.program = "</script><b>\"it's\" & <img src=x onerror=alert(1)><!--<script>";
  run.network = "</title></style><b>net</b>";
  run.assumptions = {"</script><script>alert(2)</script>", "\xff is not UTF-8, \xe2\x80\xa8 ends a line", ""};
  run.chips.clear();
  run.links.clear();
  run.memory.limit = run.memory.peak / 2;
  run.tracks.resize(1);
  run.tracks[0].spans.clear();
  run.tracks[0].memory.clear();
  write(folder / "hostile.html", hostile);
}
