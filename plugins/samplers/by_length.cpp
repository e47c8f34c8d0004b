#include "by_length.h"

#include <algorithm>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/random.h>

#include "row_lengths.h"

namespace treadle::samplers {
namespace {

/// The full batches of `rows` in another order, what is left over last.
std::vector<std::int64_t> batches_shuffled(const std::vector<std::int64_t>& rows,
                                           std::int64_t batch_size, std::uint64_t seed) {
  const std::int64_t batches = static_cast<std::int64_t>(rows.size()) / batch_size;
  if (batches < 2)
    return rows;
  const Permutation order(batches, seed);
  std::vector<std::int64_t> shuffled;
  shuffled.reserve(rows.size());
  for (std::int64_t i = 0; i < batches; ++i) {
    const auto begin = rows.begin() + order[i] * batch_size;
    shuffled.insert(shuffled.end(), begin, begin + batch_size);
  }
  shuffled.insert(shuffled.end(), rows.begin() + batches * batch_size, rows.end());
  return shuffled;
}

}  // namespace

ByLength::ByLength(const Config& config)
    : input_(config.find<std::string>("input")), pool_(config.get<std::int64_t>("pool")) {}

std::unique_ptr<const SampleOrder> ByLength::do_order(const SampleRequest& request) const {
  const at::Tensor lengths = row_lengths(*request.reader, input_);
  if (!lengths.defined()) {
    throw DataError("the sampler by_length: " +
                    (input_ ? "input " + quote_text(*input_) + " has rows of one length"
                            : "no input has rows of several lengths; " +
                                  inputs_in_words(request.reader->spec())) +
                    "; take the sampler \"shuffled\", or give the data lengths");
  }
  const at::Tensor dense = lengths.contiguous();
  const std::int64_t* const length = dense.data_ptr<std::int64_t>();
  const RandomStreams random(request.seed);
  const auto count = static_cast<std::int64_t>(request.rows.size());
  std::vector<std::int64_t> rows(request.rows.size());
  rows_shuffled(request.rows, random.seed("rows"))->fill(0, rows);
  const auto sort = [&](std::int64_t begin, std::int64_t end) {
    std::stable_sort(rows.begin() + begin, rows.begin() + end,
                     [&](std::int64_t a, std::int64_t b) { return length[a] < length[b]; });
  };
  // What fills no batch is sorted by itself: it would be the longest rows in every pass.
  const std::int64_t batches = count / request.batch_size;
  const std::int64_t full = batches * request.batch_size;
  // A pool that has all rows needs no product that could overflow.
  const std::int64_t pool = pool_ > batches ? full : pool_ * request.batch_size;
  for (std::int64_t begin = 0; begin < full; begin += pool)
    sort(begin, std::min(full, begin + pool));
  sort(full, count);
  return rows_listed(batches_shuffled(rows, request.batch_size, random.seed("batches")));
}

}  // namespace treadle::samplers
