#include "launch/group_measurement.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace treadle::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

/// Of an all-to-all, for each process: well above what the buffers of sockets hold.
constexpr std::size_t kManyBytes = std::size_t{4} << 20;
/// About the size of a step's first message without gradients.
constexpr std::size_t kHeaderBytes = 256;

double seconds_of(const std::function<void()>& call) {
  const Clock::time_point begin = Clock::now();
  call();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Of several calls, in the slowest process; of one where that takes long.
double median_seconds(Communicator& group, const std::function<void()>& call) {
  constexpr double kSeconds = 0.4;
  constexpr double kLeast = 3;
  constexpr double kMost = 201;
  const double first = seconds_of(call);
  // Rank 0 decides how often, since all do as much. The first one may have connections to make.
  std::int64_t repeats = 0;
  if (first < kSeconds)
    repeats =
        static_cast<std::int64_t>(std::clamp(kSeconds / std::max(first, 1e-6), kLeast, kMost));
  group.broadcast(std::as_writable_bytes(std::span(&repeats, 1)), 0);
  std::vector<double> times;
  for (std::int64_t i = 0; i < repeats; ++i)
    times.push_back(seconds_of(call));
  if (times.empty())
    times.push_back(first);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  std::vector<double> of_ranks(static_cast<std::size_t>(group.world_size()));
  group.all_gather(std::as_bytes(std::span(&*middle, 1)),
                   std::as_writable_bytes(std::span(of_ranks)));
  return *std::max_element(of_ranks.begin(), of_ranks.end());
}

}  // namespace

launch::GroupReport::Speed measure_group(Communicator& group) {
  const auto processes = static_cast<std::size_t>(group.world_size());
  const auto rank = static_cast<std::size_t>(group.rank());
  launch::GroupReport::Speed speed;

  Bytes few(sizeof(double));
  Bytes few_of_all(few.size() * processes);
  speed.latency_ms = 1e3 * median_seconds(group, [&] { group.all_gather(few, few_of_all); });

  std::vector<std::size_t> sizes(processes, kManyBytes / std::max<std::size_t>(1, processes - 1));
  sizes[rank] = 0;
  Bytes sent(kManyBytes / std::max<std::size_t>(1, processes - 1) * (processes - 1));
  Bytes received(sent.size());
  speed.bytes_per_second = static_cast<double>(sent.size()) / median_seconds(group, [&] {
                             group.all_to_all(sent, sizes, received, sizes);
                           });

  // A step with one partial sum in each process: a header, slices of the gradients, their sums.
  const std::size_t slice =
      (launch::GroupReport::kExchangedFloats + processes - 1) / processes * sizeof(float);
  const std::vector<std::size_t> slices(processes, slice);
  Bytes header(kHeaderBytes);
  Bytes headers(kHeaderBytes * processes);
  Bytes gradients(slice * processes);
  Bytes sums(slice);
  received.resize(slice * processes);
  speed.exchange_ms = 1e3 * median_seconds(group, [&] {
                        group.all_gather(header, headers);
                        group.all_to_all(gradients, slices, received, slices);
                        group.all_gather(sums, gradients);
                      });
  return speed;
}

}  // namespace treadle::cli
