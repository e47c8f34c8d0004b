#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <treadle/base/config.h>
#include <treadle/core/validation/cross_validator.h>

namespace treadle::validation {

/// A number of things as a document states it: a count, or a share of all of them.
class Size {
 public:
  explicit Size(std::int64_t count) : count_(count) {}
  explicit Size(double share) : share_(share) {}

  /// Shares are rounded, to at least 1.
  std::int64_t of(std::int64_t all) const;
  /// As it was written: "24", "10%".
  std::string text() const;

 private:
  std::int64_t count_ = 0;
  double share_ = 0;  // 0: a count
};

/// The parameter `key`, an integer or a fraction; nothing when it is absent.
std::optional<Size> find_size(const Config& config, std::string_view key);

/// The parameter `seed` of a splitter: rows are chosen by it, and the run's seed may change without
/// them.
class OwnSeed {
 public:
  explicit OwnSeed(const Config& config) : seed_(config.find<std::uint64_t>("seed")) {}

  SplitRequest in(SplitRequest request) const {
    if (seed_)
      request.random = RandomStreams(*seed_);
    return request;
  }

 private:
  std::optional<std::uint64_t> seed_;
};

}  // namespace treadle::validation
