// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trains a multilingual to English mixture-of-experts Transformer, and translates with it. The data are names that the package iso-codes
// translates into 150 languages. See --help.

#include "command_line.hpp"
#include "data/corpus.hpp"
#include "data/splits.hpp"
#include "data/vocabulary.hpp"
#include "progress.hpp"
#include "results.hpp"
#include "settings.hpp"
#include "trainer.hpp"
#include "translator.hpp"
#include "watch.hpp"

#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/io.hpp>
#include <gshard/survive.hpp>
#if GSHARD_HAS_MPI
#include <gshard/cluster/mpi_cluster.hpp>
#endif

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace translate;

/// MPI during the program. It is not started for a simulation.
class mpi_session {
 public:
  mpi_session([[maybe_unused]] int& argc, [[maybe_unused]] char**& argv, [[maybe_unused]] bool wanted) {
#if GSHARD_HAS_MPI
    if (!wanted) return;
    MPI_Init(&argc, &argv);
    started_ = true;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
#endif
  }
  ~mpi_session() {
#if GSHARD_HAS_MPI
    if (started_) MPI_Finalize();
#endif
  }
  mpi_session(const mpi_session&) = delete;
  mpi_session& operator=(const mpi_session&) = delete;

  bool leader() const { return rank_ == 0; }

  /// Prints the error, and returns the exit status. If all ranks fail, they end together, and rank 0 prints. If the others do not arrive, a
  /// rank aborts all and prints its own error.
  int fail(const std::string& what) const {
    if (leader()) say(what);
    if (!all_come(std::chrono::seconds(leader() ? 5 : 7))) {
      if (!leader()) say(what);
      abort();
    }
    return 1;
  }
  gs::cluster<mesh> cluster() const {
#if GSHARD_HAS_MPI
    if (started_) return gs::on_mpi<mesh>(MPI_COMM_WORLD);
#endif
    return gs::on_one_device<mesh>();
  }

 private:
  bool started_ = false;
  int rank_ = 0;

  static void say(const std::string& what) { std::cerr << "translate: " << what << std::endl; }

  bool all_come([[maybe_unused]] std::chrono::seconds patience) const {
#if GSHARD_HAS_MPI
    if (!started_) return true;
    using clock = std::chrono::steady_clock;
    const clock::time_point end = clock::now() + patience;
    MPI_Request barrier;
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    for (int done = 0; !done;) {
      if (clock::now() > end) return false;
      MPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
#endif
    return true;
  }
  static void abort() {
#if GSHARD_HAS_MPI
    MPI_Abort(MPI_COMM_WORLD, 1);
#endif
  }
};

/// The shape for translating held-out pairs and users' texts: the longest one of the training.
bucket translation_shape(const settings& s, const std::vector<bucket>& buckets, std::int64_t beam) {
  bucket shape = buckets.back();
  shape.sequences = std::max<std::int64_t>(1, 256 / (s.groups * beam)) * s.groups * beam;
  return shape;
}

void translate_text(const gs::any_cluster& on, const command_line& c, const vocabulary& words, translator& translate) {
  const std::vector<std::string> texts{nfc(c.text)};
  const std::size_t pieces = words.encode(texts.front()).size(), read = std::size_t(translate.source_length());
  if (on.backend().leader() && pieces > read)
    std::cerr << "translate: the text is truncated: it has " << pieces << " word pieces, and this model reads " << read << std::endl;
  const std::string result = translate(texts).front();
  if (on.backend().leader()) std::cout << result << '\n';
}

/// Translates with a saved model.
void use(const gs::cluster<mesh>& on, const command_line& c) {
  const gs::checkpoint_notes notes = gs::load_notes(on, c.load);
  settings s;
  s.read_metadata(notes.metadata);
  const auto blob = notes.blobs.find("vocabulary");
  if (blob == notes.blobs.end()) throw std::runtime_error(c.load + " holds no vocabulary: it is none of this program's models");
  const std::unique_ptr<vocabulary> words = load_vocabulary(blob->second);
  const bucket shape{kept_count(notes.metadata, "source_length"), kept_count(notes.metadata, "target_length"), s.groups * c.beam};
  gs::parameter_store store(on);
  translator translate(on, s, shape, c.beam, *words, store);
  gs::load(store, c.load);
  translate_text(on, c, *words, translate);
}

/// Keeps the losses of a file up to a step. Later steps are computed again. Returns the file, open at its end.
std::ofstream continue_losses(const std::string& path, std::uint32_t step) {
  std::string kept;
  std::ifstream before(path);
  std::uint32_t number = 0;
  for (std::string line; step > 0 && std::getline(before, line) && std::istringstream(line) >> number && number <= step;) kept += line + '\n';
  before.close();
  std::ofstream losses(path);
  losses.precision(9);
  losses << kept << std::flush;
  if (!losses) throw std::runtime_error(path + ": cannot be written");
  return losses;
}

/// The directory of the checkpoints on this host.
std::string directory_here(std::string path) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  if (const std::size_t at = path.find("%h"); at != path.npos) path.replace(at, 2, host);
  return path;
}

/// Returns the exit status. If a signal has stopped the run, the status asks for a restart.
int train(const gs::cluster<mesh>& on, const command_line& c) {
  const bool tell = on.backend().leader();
  settings s = c.quick ? settings::quick() : settings{};
  s.seed = c.seed;
  if (c.minutes) s.minutes = *c.minutes;
  if (tell && c.quick)
    std::cout << "--quick: a small model, and a training too short to learn to translate; it shows that everything runs" << std::endl;

  gs::on_leader(on, [&] {
    if (!c.save.empty()) const gs::atomic_file can_be_made(c.save);  // report an unwritable file before the training
  });

  corpus_options where;
  where.directory = c.data;
  const splits data = split(read_corpus(where));
  const std::string trained = gs::on_leader(on, [&] { return train_vocabulary(data.train, s.pieces)->serialize(); });
  const std::unique_ptr<vocabulary> words = load_vocabulary(trained);
  const std::vector<encoded_pair> encoded = encode(*words, data.train);
  bucket_options shapes;
  shapes.sequences_multiple = s.groups;
  shapes.tokens = s.batch_tokens;
  const std::vector<bucket> buckets = choose_buckets(encoded, shapes);
  batch_stream batches(encoded, buckets, s.seed);

  gs::parameter_store store(on, s.seed);
  trainer training(on, s, buckets, words->size(), store);
  if (tell) {
    std::int64_t count = 0;
    for (const auto& [name, e] : store.entries()) {
      std::int64_t n = e.trainable ? 1 : 0;
      for (const std::int64_t extent : e.value.extents) n *= extent;
      count += n;
    }
    std::cout << data.train.size() << " training pairs, " << words->size() << " word pieces, " << count << " parameters, " << s.experts
              << " experts in every second layer, " << s.groups << " groups on " << on.size()
              << (on.size() == 1 ? " device" : " devices") << '\n';
    std::cout << "batches (sequences x source + target):";
    for (const bucket& b : buckets) std::cout << ' ' << b.sequences << 'x' << b.source_length << '+' << b.target_length;
    std::cout << std::endl;
    if (c.plan) std::cout << gs::describe(training.executor(0).plan());
  }

  // mpirun gives each process its own terminal, so isatty alone is not enough: --plain turns the bar off.
  const training_length length{60 * s.minutes, c.steps};
  std::optional<gs::stop_request> stop;
  std::optional<gs::event_log> events;
  std::optional<gs::telemetry> monitor;
  std::optional<gs::checkpointer> checkpoints;
  if (!c.checkpoint.empty()) {
    stop.emplace();
    const std::string directory = directory_here(c.checkpoint);
    events.emplace(on, directory);
    events->write_plan("training", training.executor(0));
    monitor.emplace(on, gs::telemetry_options{.directory = directory, .events = &*events});
    for (std::size_t i = 0; i < buckets.size(); ++i) monitor->add(training.executor(i));
    std::map<std::string, std::string> shape = s.to_metadata();
    shape["batch_tokens"] = std::to_string(s.batch_tokens);
    checkpoints.emplace(store, directory,
                        gs::checkpointer_options{.every_steps = c.every.steps, .every_seconds = c.every.seconds,
                                                 .per_host = c.checkpoint.find("%h") != std::string::npos, .settings = shape});
    checkpoints->log_to(*events);
    checkpoints->keep_state("batches", [&] { return batches.save(); }, [&](std::string_view saved) { batches.restore(saved); });
  }
  progress clock(length, !c.plain && isatty(STDOUT_FILENO) == 1);
  if (checkpoints) {
    checkpoints->keep_state("seconds", [&] { return std::to_string(clock.elapsed()); },
                            [&](std::string_view saved) { clock.continue_at(std::stod(std::string(saved))); });
    if (checkpoints->resume() && tell) std::cout << "continues after step " << training.steps() << std::endl;
  }
  std::ofstream losses;
  gs::on_leader(on, [&] {
    if (!c.losses.empty()) losses = continue_losses(c.losses, training.steps());
  });
  for (bool more = length.share(training.steps(), clock.elapsed()) < 1; more;) {
    const batch next = batches.next();
    if (monitor) monitor->begin_step(training.steps());
    const step_report r = training.step(next);
    if (monitor) {
      monitor->value("loss", r.loss);
      monitor->value("balance loss", r.balance_loss);
      monitor->value("refused", r.refused_share());
      monitor->values("expert load", r.load);
      monitor->end_step();
    }
    if (losses.is_open()) losses << training.steps() << ' ' << r.loss << ' ' << r.balance_loss << std::endl;
    more = length.share(training.steps(), clock.elapsed()) < 1;
    on.backend().broadcast(std::as_writable_bytes(std::span(&more, 1)));  // the leader's clock decides
    if (tell) clock.show(training.steps(), r, !more);
    if (checkpoints && !checkpoints->after_step()) {
      if (tell) std::cout << "\nstopped after step " << training.steps() << std::endl;
      return gs::wait_deadlines::restart_status;
    }
  }
  const double seconds = clock.elapsed();
  gs::on_leader(on, [&] {
    if (losses.is_open() && !losses.flush()) throw std::runtime_error(c.losses + ": could not be written to its end");
  });
  if (tell) std::cout << "trained " << training.steps() << " steps in " << int(seconds) << " s\n\n";

  if (!c.save.empty()) {
    gs::checkpoint_notes notes{s.to_metadata(), {{"vocabulary", words->serialize()}}};
    notes.metadata["source_length"] = std::to_string(buckets.back().source_length);
    notes.metadata["target_length"] = std::to_string(buckets.back().target_length);
    gs::save(store, c.save, notes);
    if (tell) std::cout << "saved " << c.save << "\n\n";
  }
  if (checkpoints) checkpoints->finish();
  if (!c.text.empty()) {
    bucket shape = buckets.back();
    shape.sequences = s.groups * c.beam;
    translator translate(on, s, shape, c.beam, *words, store);
    translate_text(on, c, *words, translate);
    return 0;
  }

  const std::size_t most = c.quick ? 200 : 3000;
  std::optional<translator> greedy(std::in_place, on, s, translation_shape(s, buckets, 1), 1, *words, store);
  std::optional<scoreboard> scores;
  if (tell) scores.emplace(data.train);
  const auto evaluate_set = [&](const std::string& name, const std::vector<pair>& pairs, std::size_t limit) {
    const std::vector<pair> some = sample(pairs, limit);
    const std::vector<std::string> ours = (*greedy)(sources(some));
    if (tell) scores->add(name, some, ours);
  };
  evaluate_set("known term, known language", data.pairs.clean, most);
  evaluate_set("known term, unseen language", data.languages.clean, most / 4);
  evaluate_set("unseen term", data.terms.clean, most / 4);
  if (tell) std::cout << scores->text() << '\n';

  const std::vector<pair> shown = showcase(sample(data.pairs.clean, most), 12);
  greedy.reset();
  translator beams(on, s, translation_shape(s, buckets, c.beam), c.beam, *words, store);
  const std::vector<std::string> translated = beams(sources(shown));
  if (!tell) return 0;
  const std::string by_beam = "translation (beam of " + std::to_string(c.beam) + ")";
  std::cout << fill("locale", 10) << fill("source", 34) << fill(by_beam, 34) << "reference\n";
  for (std::size_t i = 0; i < shown.size(); ++i)
    std::cout << fill(shown[i].locale, 10) << fill(shown[i].source, 34) << fill(translated[i], 34) << shown[i].target << '\n';
  std::cout << '\n' << communication_report(training);
  return 0;
}

/// Shows the progress of the training with checkpoints in this directory, until it has finished.
void watch(const std::string& path) {
  std::string shown;
  for (bool more = true; more;) {
    more = !std::filesystem::exists(path + "/finished");
    const std::string line = state_of_run(path);
    if (line != shown) std::cout << (line.empty() ? "nothing yet in " + path : line) << std::endl;
    shown = line;
    if (more) std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  std::cout << "finished" << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  const command_line c = parse(argc, argv);
  const mpi_session mpi(argc, argv, c.with_mpi);
  if (!c.help.empty()) {
    if (mpi.leader()) std::cout << c.help;
    return 0;
  }
  if (!c.problem.empty()) return mpi.fail(c.problem);
  try {
    if (!c.watch.empty()) {
      watch(directory_here(c.watch));
      return 0;
    }
    const gs::cluster<mesh> on = c.with_mpi ? mpi.cluster() : gs::simulate<mesh>(c.simulate);
    if (c.load.empty()) return train(on, c);
    use(on, c);
    return 0;
  } catch (const std::exception& e) {
    return mpi.fail(e.what());
  }
}
