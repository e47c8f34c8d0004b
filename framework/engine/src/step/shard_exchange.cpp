#include "step/shard_exchange.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/GradMode.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>

#include "step/process_failure.h"

namespace treadle::engine {
namespace {

/// Gradients of fewer bytes are gathered in one message: their transfer takes less time than a
/// message more.
constexpr std::int64_t kSmall = 64 << 10;
/// No bit depends on it.
constexpr std::int64_t kStepsBetweenDigests = 64;

/// The beginning of a message.
struct Header {
  std::int64_t step = 0;
  std::array<char, 32> digest = {};  ///< of the parameters, in some steps
  std::uint64_t more = 0;            ///< bytes that this process has to say beside
  double seconds = 0;
  std::uint8_t has_failed = 0;
  std::uint8_t stop = 0;
  std::uint8_t save = 0;
  std::uint8_t padding[5] = {};
};

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

std::size_t size_of_touched(const ParameterArena& arena) {
  return (arena.segments().size() + 7) / 8;
}

/// Partial sums of a range of elements, added to each other by the tree.
template <typename T>
class Partials {
 public:
  Partials(const std::vector<ShardRange>& sums, std::vector<T*> numbers, std::int64_t count)
      : sums_(sums), numbers_(std::move(numbers)), count_(count) {}

  /// The numbers of `range`: in the memory of the first of its sums.
  T* add(const ShardRange& range) {
    const auto mine = std::find(sums_.begin(), sums_.end(), range);
    if (mine != sums_.end())
      return numbers_[static_cast<std::size_t>(mine - sums_.begin())];
    const std::size_t middle = middle_of(range);
    T* __restrict left = add({range.first, middle});
    const T* __restrict right = add({middle, range.last});
    for (std::int64_t i = 0; i < count_; ++i)
      left[i] += right[i];
    return left;
  }

 private:
  const std::vector<ShardRange>& sums_;
  const std::vector<T*> numbers_;
  const std::int64_t count_;
};

/// `blocks`: where the numbers of each sum begin. Returns that of the whole.
std::byte* add_partials(const std::vector<ShardRange>& sums, const std::vector<std::byte*>& blocks,
                        std::size_t shards, std::int64_t count, at::ScalarType dtype) {
  const auto of_type = [&](auto zero) {
    using T = decltype(zero);
    std::vector<T*> numbers;
    for (std::byte* const block : blocks)
      numbers.push_back(reinterpret_cast<T*>(block));
    return reinterpret_cast<std::byte*>(Partials<T>(sums, numbers, count).add({0, shards}));
  };
  return dtype == at::kFloat ? of_type(0.0F) : of_type(0.0);
}

std::vector<std::vector<ShardRange>> sums_by_rank(const ShardGroup& group) {
  std::vector<std::vector<ShardRange>> sums;
  for (std::int64_t rank = 0; rank < group.world_size(); ++rank)
    sums.push_back(partial_sums({0, group.shards()}, group.shards_of(rank)));
  return sums;
}

std::size_t most_of(const std::vector<std::vector<ShardRange>>& sums) {
  std::size_t most = 0;
  for (const auto& of_rank : sums)
    most = std::max(most, of_rank.size());
  return most;
}

}  // namespace

ShardExchange::Layout ShardExchange::layout() const {
  const ParameterArena& arena = *arenas_.front();
  Layout layout;
  layout.touched = sizeof(Header);
  layout.losses = layout.touched + (size_of_touched(arena) + 7) / 8 * 8;
  layout.numbers_of_shard = 2 * terms_ + 2;
  layout.gradients =
      layout.losses + group_.most_shards() * layout.numbers_of_shard * sizeof(double);
  layout.gradients = (layout.gradients + 63) / 64 * 64;
  layout.bytes_of_sum = arena.gradients().nbytes();
  layout.size = layout.gradients + (is_small_ ? most_of(sums_) * layout.bytes_of_sum : 0);
  return layout;
}

ShardExchange::ShardExchange(ShardGroup& group, Model& model, std::vector<ParameterArena*> arenas,
                             std::size_t terms, ParameterArena::Ranges for_ranges)
    : group_(group),
      model_(model),
      arenas_(std::move(arenas)),
      terms_(terms),
      for_ranges_(std::move(for_ranges)),
      sums_(sums_by_rank(group)),
      is_small_(static_cast<std::int64_t>(arenas_.front()->gradients().nbytes()) <= kSmall),
      layout_(layout()) {
  TREADLE_EXPECTS(arenas_.size() == group.own().size(), "there is one arena for each own shard");
  message_.resize(layout_.size);
  messages_.resize(layout_.size * static_cast<std::size_t>(group.world_size()));
}

std::vector<ShardLoss> ShardExchange::run(const Part& part) {
  try {
    return exchange(part);
  } catch (const CommunicationError& error) {
    throw CommunicationError(
        std::string(error.what()) + " (in step " + std::to_string(part.step) + ")", error.rank());
  }
}

std::vector<ShardLoss> ShardExchange::exchange(const Part& part) {
  const at::NoGradGuard no_gradients;
  nlohmann::json own_more;
  if (part.error) {
    const ProcessFailure failure = failure_of(part.error);
    own_more["failure"] = {static_cast<int>(failure.kind), failure.message};
  }
  for (std::size_t i = 0; i < part.losses.size() && !part.error; ++i) {
    for (const AuxiliaryLoss& one : part.losses[i].loss.auxiliary)
      own_more["auxiliary"].push_back({i, one.name, one.sum.item<double>()});
  }
  std::vector<std::byte> more;
  if (!own_more.is_null()) {
    const std::vector<std::uint8_t> cbor = nlohmann::json::to_cbor(own_more);
    more.resize(cbor.size());
    std::memcpy(more.data(), cbor.data(), cbor.size());
  }
  if (!part.error)
    add_own_gradients();
  write_message(part, more);
  group_.all_gather(message_, messages_);
  read_signals(part.step);

  const auto header = [&](std::size_t rank) {
    Header read;
    std::memcpy(&read, messages_.data() + rank * message_.size(), sizeof read);
    return read;
  };
  const auto processes = static_cast<std::size_t>(group_.world_size());
  bool is_more = false;
  for (std::size_t rank = 0; rank < processes; ++rank)
    is_more = is_more || header(rank).more > 0;
  std::vector<std::vector<std::byte>> all_more(processes);
  if (is_more)
    all_more = group_.gather(more);
  for (std::size_t rank = 0; rank < processes; ++rank) {
    if (header(rank).has_failed == 0)
      continue;
    if (static_cast<std::int64_t>(rank) == group_.rank())
      std::rethrow_exception(part.error);
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(all_more[rank].data());
    const nlohmann::json its = nlohmann::json::from_cbor(begin, begin + all_more[rank].size());
    throw_again({static_cast<ErrorKind>(its.at("failure").at(0).get<int>()),
                 its.at("failure").at(1).get<std::string>()},
                static_cast<std::int64_t>(rank));
  }
  std::vector<ShardLoss> losses = read_losses(all_more);
  is_small_ ? add_gathered() : exchange_slices();
  send_buffers();
  return losses;
}

/// Each partial sum is then in the arena of its first shard.
void ShardExchange::add_own_gradients() {
  const std::size_t first = group_.own().first;
  for (const ShardRange& range : sums_[static_cast<std::size_t>(group_.rank())]) {
    std::vector<const ParameterArena*> others;
    for (std::size_t shard = range.first + 1; shard < range.last; ++shard)
      others.push_back(arenas_[shard - first]);
    arenas_[range.first - first]->add_gradients(others, for_ranges_);
  }
}

void ShardExchange::write_message(const Part& part, std::span<const std::byte> more) {
  ParameterArena& arena = *arenas_.front();
  std::fill(message_.begin(), message_.end(), std::byte{0});
  const ShardGroup::Signals& wishes = group_.wishes();
  Header header;
  header.step = part.step;
  header.more = more.size();
  header.seconds = wishes.seconds;
  header.has_failed = part.error != nullptr;
  header.stop = wishes.stop;
  header.save = wishes.save;
  if (!std::exchange(has_run_, true) || part.step % kStepsBetweenDigests == 0)
    hash_bytes(bytes_of(arena.parameters().cpu())).copy(header.digest.data(), header.digest.size());
  std::memcpy(message_.data(), &header, sizeof header);
  if (part.error)
    return;

  for (std::size_t i = 0; i < arena.segments().size(); ++i) {
    const bool is_touched =
        std::any_of(arenas_.begin(), arenas_.end(),
                    [&](const ParameterArena* one) { return one->segments()[i].touched; });
    if (is_touched)
      message_[layout_.touched + i / 8] |= std::byte{1} << i % 8;
  }
  std::vector<double> numbers;
  for (const ShardLoss& shard : part.losses) {
    const std::vector<BatchLoss::Term>& terms = shard.loss.terms;
    TREADLE_EXPECTS(terms.size() <= terms_,
                    "a step's loss has no more terms than the exchange has room for");
    numbers.push_back(static_cast<double>(shard.rows));
    numbers.push_back(static_cast<double>(terms.size()));
    for (const BatchLoss::Term& term : terms)
      numbers.push_back(term.sum.item<double>());
    numbers.resize(numbers.size() + terms_ - terms.size());
    for (const BatchLoss::Term& term : terms)
      numbers.push_back(term.weight.defined() ? term.weight.item<double>() : term.count);
    numbers.resize(numbers.size() + terms_ - terms.size());
  }
  std::memcpy(message_.data() + layout_.losses, numbers.data(), numbers.size() * sizeof(double));
  if (!is_small_)
    return;
  std::byte* to = message_.data() + layout_.gradients;
  for (const ShardRange& range : sums_[static_cast<std::size_t>(group_.rank())]) {
    const at::Tensor host = arenas_[range.first - group_.own().first]->gradients().cpu();
    std::memcpy(to, host.data_ptr(), layout_.bytes_of_sum);
    to += layout_.bytes_of_sum;
  }
}

/// Throws where the processes are not at one step with one model.
void ShardExchange::read_signals(std::int64_t step) const {
  ShardGroup::Signals agreed;
  std::string others;
  std::array<char, 32> digest = {};
  for (std::int64_t rank = 0; rank < group_.world_size(); ++rank) {
    Header header;
    std::memcpy(&header, messages_.data() + static_cast<std::size_t>(rank) * message_.size(),
                sizeof header);
    if (header.step != step) {
      throw CommunicationError(
          "rank " + std::to_string(rank) + " is at step " + std::to_string(header.step) +
              ", and rank " + std::to_string(group_.rank()) + " at step " + std::to_string(step) +
              ": are all processes of one training, from one checkpoint?",
          static_cast<int>(rank));
    }
    agreed.stop = agreed.stop || header.stop != 0;
    if (rank == 0) {
      agreed.save = header.save != 0;
      agreed.seconds = header.seconds;
      digest = header.digest;
    } else if (header.digest != digest) {
      others += (others.empty() ? "" : ", ") + std::to_string(rank);
    }
  }
  if (!others.empty()) {
    throw TrainingError(
        "the processes of this training have different parameters in step " + std::to_string(step) +
        ": those of rank " + others +
        " are not those of rank 0; processors of different kinds round differently, and so do "
        "different versions of libtorch and BLAS: start the processes on equal machines");
  }
  group_.agree(agreed);
}

std::vector<ShardLoss> ShardExchange::read_losses(
    const std::vector<std::vector<std::byte>>& more) const {
  const c10::Device device = arenas_.front()->gradients().device();
  const auto number = [&](double value) {
    return at::scalar_tensor(value, at::TensorOptions(at::kDouble).device(device));
  };
  std::vector<ShardLoss> losses;
  std::vector<bool> touched(arenas_.front()->segments().size());
  for (std::int64_t rank = 0; rank < group_.world_size(); ++rank) {
    const std::byte* const message =
        messages_.data() + static_cast<std::size_t>(rank) * message_.size();
    for (std::size_t i = 0; i < touched.size(); ++i) {
      if ((message[layout_.touched + i / 8] & std::byte{1} << i % 8) != std::byte{0})
        touched[i] = true;
    }
    std::vector<double> numbers(layout_.numbers_of_shard * group_.shards_of(rank).size());
    std::memcpy(numbers.data(), message + layout_.losses, numbers.size() * sizeof(double));
    const std::size_t first = losses.size();
    for (std::size_t at = 0; at < numbers.size(); at += layout_.numbers_of_shard) {
      ShardLoss& loss = losses.emplace_back();
      loss.rows = static_cast<std::int64_t>(numbers[at]);
      for (std::size_t term = 0; term < static_cast<std::size_t>(numbers[at + 1]); ++term) {
        loss.loss.terms.push_back(
            {number(numbers[at + 2 + term]), {}, numbers[at + 2 + terms_ + term]});
      }
    }
    const std::vector<std::byte>& its_more = more[static_cast<std::size_t>(rank)];
    if (its_more.empty())
      continue;
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(its_more.data());
    const nlohmann::json read = nlohmann::json::from_cbor(begin, begin + its_more.size());
    for (const nlohmann::json& one : read.value("auxiliary", nlohmann::json::array())) {
      losses[first + one.at(0).get<std::size_t>()].loss.auxiliary.push_back(
          {one.at(1).get<std::string>(), number(one.at(2).get<double>())});
    }
  }
  arenas_.front()->touch(touched);
  return losses;
}

/// Small ones: every process has all partial sums, and adds them.
void ShardExchange::add_gathered() {
  std::vector<ShardRange> sums;
  std::vector<std::byte*> blocks;
  for (std::size_t rank = 0; rank < sums_.size(); ++rank) {
    std::byte* block = messages_.data() + rank * message_.size() + layout_.gradients;
    for (const ShardRange& range : sums_[rank]) {
      sums.push_back(range);
      blocks.push_back(block);
      block += layout_.bytes_of_sum;
    }
  }
  const at::Tensor& gradients = arenas_.front()->gradients();
  std::byte* const sum =
      add_partials(sums, blocks, group_.shards(), gradients.numel(), gradients.scalar_type());
  gradients.copy_(at::from_blob(sum, gradients.sizes(), at::dtype(gradients.scalar_type())));
}

void ShardExchange::exchange_slices() {
  const at::Tensor& gradients = arenas_.front()->gradients();
  const auto element = static_cast<std::size_t>(gradients.element_size());
  const auto processes = static_cast<std::size_t>(group_.world_size());
  const auto rank = static_cast<std::size_t>(group_.rank());
  const auto total = static_cast<std::size_t>(gradients.numel());
  // Slices are equal but for the last ones.
  const std::size_t slice = (total + processes - 1) / processes;
  const auto begin_of = [&](std::size_t place) { return std::min(place * slice, total); };
  const auto size_of = [&](std::size_t place) { return begin_of(place + 1) - begin_of(place); };

  std::vector<at::Tensor> partials;
  for (const ShardRange& range : sums_[rank])
    partials.push_back(arenas_[range.first - group_.own().first]->gradients().cpu());
  std::vector<std::size_t> sent_sizes;
  std::vector<std::size_t> received_sizes;
  std::size_t received = 0;
  for (std::size_t place = 0; place < processes; ++place) {
    sent_sizes.push_back(partials.size() * size_of(place) * element);
    received_sizes.push_back(sums_[place].size() * size_of(rank) * element);
    received += received_sizes.back();
  }
  received_.resize(received);
  std::span<const std::byte> sent;
  if (partials.size() == 1) {
    sent = bytes_of(partials.front());
  } else {
    sent_.clear();
    for (std::size_t place = 0; place < processes; ++place) {
      for (const at::Tensor& partial : partials) {
        const auto part =
            bytes_of(partial).subspan(begin_of(place) * element, size_of(place) * element);
        sent_.insert(sent_.end(), part.begin(), part.end());
      }
    }
    sent = sent_;
  }
  group_.all_to_all(sent, sent_sizes, received_, received_sizes);

  std::vector<ShardRange> sums;
  std::vector<std::byte*> blocks;
  for (const std::vector<ShardRange>& of_rank : sums_) {
    for (const ShardRange& range : of_rank) {
      blocks.push_back(received_.data() + sums.size() * size_of(rank) * element);
      sums.push_back(range);
    }
  }
  std::byte* const sum =
      add_partials(sums, blocks, group_.shards(), static_cast<std::int64_t>(size_of(rank)),
                   gradients.scalar_type());
  // Every slice is sent as if it were a full one.
  sent_.resize(slice * element);
  std::copy_n(sum, size_of(rank) * element, sent_.begin());
  received_.resize(processes * slice * element);
  if (gradients.is_cpu() && processes * slice == total) {
    group_.all_gather(sent_, bytes_of(gradients));
    return;
  }
  group_.all_gather(sent_, received_);
  gradients.copy_(
      at::from_blob(received_.data(), gradients.sizes(), at::dtype(gradients.scalar_type())));
}

void ShardExchange::send_buffers() {
  std::vector<at::Tensor> buffers = model_.buffers();
  std::size_t size = 0;
  for (const at::Tensor& buffer : buffers)
    size += buffer.nbytes();
  if (size == 0)
    return;
  sent_.resize(size);
  std::size_t at = 0;
  for (at::Tensor& buffer : buffers) {
    if (group_.rank() == 0) {
      const at::Tensor host = buffer.cpu().contiguous();
      std::memcpy(sent_.data() + at, host.data_ptr(), host.nbytes());
    }
    at += buffer.nbytes();
  }
  group_.broadcast(sent_, 0);
  if (group_.rank() == 0)
    return;
  at = 0;
  for (at::Tensor& buffer : buffers) {
    if (buffer.nbytes() > 0)
      buffer.copy_(
          at::from_blob(sent_.data() + at, buffer.sizes(), at::dtype(buffer.scalar_type())));
    at += buffer.nbytes();
  }
}

}  // namespace treadle::engine
