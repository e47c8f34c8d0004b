#include <treadle/base/random.h>

#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <utility>

#include <treadle/base/error.h>

namespace treadle {
namespace {

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;

// The finalizer of SplitMix64: a bijection in which every input bit reaches every output bit.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// `value` is mixed first, so that neighbouring roots and places do not cancel each other.
std::uint64_t absorb(std::uint64_t state, std::uint64_t value) {
  return mixed((state + kGolden) ^ mixed(value + kGolden));
}

// In [0, bound).
std::uint64_t scaled(std::uint64_t bits, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits) * bound) >> 64);
}

}  // namespace

std::uint64_t RandomBits::next() {
  return mixed(state_ += kGolden);
}

// D. Lemire, Fast Random Integer Generation in an Interval, 2019: the high half of next() * bound,
// where the few low halves that would favour small results are drawn again.
std::uint64_t RandomBits::below(std::uint64_t bound) {
  TREADLE_EXPECTS(bound > 0, "there is no number below 0");
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(next()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) {
      product = static_cast<Wide>(next()) * bound;
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double RandomBits::uniform() {
  return static_cast<double>(next() >> 11) * 0x1p-53;
}

double RandomBits::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

void RandomBits::shuffle(std::span<std::int64_t> values) {
  for (std::size_t left = values.size(); left > 1; --left) {
    std::swap(values[left - 1], values[below(left)]);
  }
}

std::uint64_t RandomStreams::seed(std::string_view purpose,
                                  std::initializer_list<std::uint64_t> place) const {
  std::uint64_t state = mixed(root_ + kGolden);
  // Lengths are absorbed too: ("a", {98}) is another stream than ("ab", {}).
  state = absorb(state, purpose.size());
  for (const char c : purpose)
    state = absorb(state, static_cast<unsigned char>(c));
  state = absorb(state, place.size());
  for (const std::uint64_t number : place)
    state = absorb(state, number);
  return state;
}

Permutation::Permutation(std::int64_t size, std::uint64_t seed)
    : size_(static_cast<std::uint64_t>(size)), rounds_(size < kFew ? kRoundsOfFew : kRounds) {
  TREADLE_EXPECTS(size >= 1, "a permutation has at least one element");
  left_ = static_cast<std::uint64_t>(std::ceil(std::sqrt(static_cast<double>(size_))));
  right_ = (size_ + left_ - 1) / left_;
  RandomBits bits(seed);
  for (std::uint64_t& key : keys_)
    key = bits.next();
}

// Numbers from size_ on are walked over: there are fewer than left_ of them, so this is rare. The
// two bounds change places with each round, whose number is even, so the pair ends as it began.
std::int64_t Permutation::operator[](std::int64_t position) const {
  TREADLE_EXPECTS(position >= 0 && static_cast<std::uint64_t>(position) < size_,
                  "a position lies within its permutation");
  static_assert(kRounds % 2 == 0 && kRoundsOfFew % 2 == 0);
  auto number = static_cast<std::uint64_t>(position);
  do {
    std::uint64_t left = number % left_;
    std::uint64_t right = number / left_;
    for (std::size_t round = 0; round < rounds_; ++round) {
      const std::uint64_t bound = round % 2 == 0 ? left_ : right_;
      const std::uint64_t moved = left + scaled(mixed(right ^ keys_[round]), bound);
      left = right;
      right = moved < bound ? moved : moved - bound;
    }
    number = right * left_ + left;
  } while (number >= size_);
  return static_cast<std::int64_t>(number);
}

std::vector<std::int64_t> random_permutation(std::int64_t count, RandomBits bits) {
  TREADLE_EXPECTS(count >= 0, "a permutation cannot have fewer than zero elements");
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  bits.shuffle(order);
  return order;
}

}  // namespace treadle
