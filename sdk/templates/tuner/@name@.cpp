#include <treadle/sdk.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace {

/// Local search: a trial is the best complete one with each position in the unit cube moved by a
/// normal number of deviation `std`. The first `n_startup_trials` results are of random points.
///
/// A function of its arguments, without state: the best trial is looked for in every call.
class @Name@ final : public treadle::Tuner {
 public:
  explicit @Name@(const treadle::Config& config)
      : n_startup_trials_(config.get<std::int64_t>("n_startup_trials")),
        std_(config.get<double>("std")) {}

 private:
  std::optional<treadle::Point> do_suggest(const treadle::SearchSpace& space,
                                           std::span<const treadle::Trial> visible,
                                           std::int64_t number,
                                           const treadle::RandomStreams& random) const override {
    const treadle::Trial* best = nullptr;
    std::int64_t results = 0;
    for (const treadle::Trial& trial : visible) {
      // Neither running, pruned or failed trials, nor those whose objective is not a number.
      if (trial.state != treadle::TrialState::kComplete || std::isnan(trial.values[0]))
        continue;
      ++results;
      if (best == nullptr || trial.values[0] < best->values[0])
        best = &trial;
    }
    treadle::RandomBits bits = random.bits("@name@", {static_cast<std::uint64_t>(number)});
    if (results < n_startup_trials_)
      return space.random(bits);
    std::vector<double> positions = space.to_unit(best->point);
    for (double& position : positions)
      position += std_ * bits.normal();
    // Takes positions outside the cube as its nearer side, and leaves out inactive dimensions.
    return space.from_unit(positions);
  }

  std::int64_t n_startup_trials_;
  double std_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
