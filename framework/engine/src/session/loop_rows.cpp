#include "session/loop_rows.h"

#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/engine/device_traffic.h>

namespace treadle::engine {
namespace {

constexpr const char* kParts = "parts";

/// Batches as an evaluation prepares them for the model.
class PreparedStream final : public BatchStream {
 public:
  PreparedStream(std::unique_ptr<BatchStream> rows, const SessionSetup& setup, c10::Device device)
      : rows_(std::move(rows)), setup_(setup), device_(device) {}

 private:
  bool do_next(Batch& batch) override {
    Batch taken;
    if (!rows_->next(taken))
      return false;
    batch = sent(taken, device_, setup_.timeline);
    if (setup_.preparation != nullptr && setup_.preparation->has_device_part())
      setup_.preparation->after_transfer(batch, ApplyContext{});
    return true;
  }
  StateDict do_state() const override { return rows_->state(); }
  void do_load_state(const StateDict& state) override { rows_->load_state(state); }

  const std::unique_ptr<BatchStream> rows_;
  const SessionSetup& setup_;
  const c10::Device device_;
};

}  // namespace

LoopRows::LoopRows(const SessionSetup& setup, c10::Device device) : setup_(setup), device_(device) {
  for (const NamedRows& rows : setup.rows) {
    if (rows.training != nullptr)
      parts_.emplace(rows.name, Part{rows.training});
  }
}

Batch LoopRows::next(std::string_view part) {
  const auto found = parts_.find(part);
  TREADLE_EXPECTS(found != parts_.end(), "no rows \"" + std::string(part) +
                                             "\" are set aside; name them in LoopNeeds::parts");
  Part& its = found->second;
  const std::int64_t a_pass = its.source->batches_per_epoch().value();
  if (!its.stream || its.taken % a_pass == 0) {
    its.stream.reset();
    its.stream = its.source->epoch(its.taken / a_pass, its.taken % a_pass);
  }
  Batch batch;
  TREADLE_EXPECTS(its.stream->next(batch), "a pass has batches_per_epoch() batches");
  ++its.taken;
  return device_.is_cpu() ? batch : sent(batch, device_, setup_.timeline);
}

std::unique_ptr<BatchStream> LoopRows::to_evaluate(std::string_view rows) const {
  if (rows == "validation" && setup_.validation != nullptr)
    return setup_.validation->epoch(0);
  for (const NamedRows& one : setup_.rows) {
    if (one.name == rows && one.evaluation != nullptr)
      return one.evaluation->epoch(0);
  }
  throw ContractViolation("this training has no rows \"" + std::string(rows) + "\" to evaluate");
}

std::unique_ptr<BatchStream> LoopRows::read(std::string_view rows) const {
  return std::make_unique<PreparedStream>(to_evaluate(rows), setup_, device_);
}

void LoopRows::save_in(StateDict& state) const {
  if (parts_.empty())
    return;
  nlohmann::json taken = nlohmann::json::object();
  for (const auto& [name, part] : parts_)
    taken[name] = part.taken;
  state.put(kParts, std::move(taken));
}

void LoopRows::load_from(const StateDict& state) {
  for (auto& [name, part] : parts_) {
    part.taken = state.value(kParts).at(name).get<std::int64_t>();
    part.stream.reset();
  }
}

}  // namespace treadle::engine
