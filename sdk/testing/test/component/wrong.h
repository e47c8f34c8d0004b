#pragma once

#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// Implementations with one defect each, and the claims that find it: what a contract suite is
/// worth.
namespace treadle::testing {

template <typename Case>
struct Wrong {
  Case implementation;
  std::set<std::string> claims;  ///< of its suite: those that must fail, all others hold
};

/// The same without the implementation.
struct Defect {
  std::string suite;
  std::string name;
  std::set<std::string> claims;
};

inline void PrintTo(const Defect& defect, std::ostream* out) {
  *out << defect.name;
}

/// For what goes wrong in several threads, without the chance that a race has in it.
class OneThread {
 public:
  bool is_mine() const { return std::this_thread::get_id() == mine_; }

 private:
  std::thread::id mine_ = std::this_thread::get_id();
};

template <typename Case>
std::vector<Case> cases_of(const std::vector<Wrong<Case>>& all) {
  std::vector<Case> cases;
  for (const Wrong<Case>& wrong : all)
    cases.push_back(wrong.implementation);
  return cases;
}

template <typename Case>
std::vector<Defect> defects_of(const std::string& suite, const std::vector<Wrong<Case>>& all) {
  std::vector<Defect> defects;
  for (const Wrong<Case>& wrong : all)
    defects.push_back({suite, wrong.implementation.name, wrong.claims});
  return defects;
}

// Each from the file of its suite.
std::vector<Defect> data_defects();
std::vector<Defect> stream_defects();
std::vector<Defect> transform_defects();
std::vector<Defect> validation_defects();
std::vector<Defect> model_defects();
std::vector<Defect> layer_defects();
std::vector<Defect> graph_defects();
std::vector<Defect> loss_defects();
std::vector<Defect> gradients_defects();
std::vector<Defect> optimizer_defects();
std::vector<Defect> schedule_defects();
std::vector<Defect> metric_defects();
std::vector<Defect> output_defects();
std::vector<Defect> sampler_defects();
std::vector<Defect> writer_defects();
std::vector<Defect> sequence_defects();
std::vector<Defect> tokenizer_defects();
std::vector<Defect> observer_defects();
std::vector<Defect> training_defects();
std::vector<Defect> callback_defects();
std::vector<Defect> device_defects();
std::vector<Defect> storage_defects();
std::vector<Defect> tuner_defects();
std::vector<Defect> pruner_defects();
std::vector<Defect> communicator_defects();

}  // namespace treadle::testing
