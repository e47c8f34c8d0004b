#include <treadle/core/components/fit_id.h>

#include <algorithm>

#include <treadle/base/error.h>

namespace treadle {
namespace {

constexpr std::size_t kLongestPart = 64;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

bool FitId::is_part(std::string_view name) {
  return !name.empty() && name.size() <= kLongestPart && name.front() != '-' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_'; });
}

FitId::FitId(std::string_view name, std::int64_t index, std::int64_t count)
    : path_(name), indices_{index}, count_(count) {
  TREADLE_EXPECTS(is_part(name), "\"" + path_ + "\" cannot name a fit: " + std::string(kPartRule));
  TREADLE_EXPECTS(index >= 0, "a fit is counted from 0");
}

FitId FitId::child(std::string_view name, std::int64_t index, std::int64_t count) const {
  FitId child(name, index, count);
  child.path_ = path_ + "/" + child.path_;
  child.indices_.insert(child.indices_.begin(), indices_.begin(), indices_.end());
  return child;
}

std::string FitId::group() const {
  const std::size_t end = path_.rfind('/');
  return end == std::string::npos ? std::string() : path_.substr(0, end);
}

RandomStreams FitId::random(const RandomStreams& of_run) const {
  RandomStreams streams = of_run;
  // The word is part of every seed: another one would change the bits of every run.
  for (const std::int64_t index : indices_)
    streams = streams.part("trial", static_cast<std::uint64_t>(index));
  return streams;
}

}  // namespace treadle
