#include "chunk_cache.h"

#include <atomic>

#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/testing/support/at_once.h>

namespace treadle::arrays {
namespace {

using ::testing::ElementsAre;

/// Fills a chunk with its number, and writes down that it did.
class ChunkCacheTest : public ::testing::Test {
 protected:
  std::byte first_byte_of(ChunkCache& cache, std::size_t chunk, std::size_t bytes = 10) {
    const ChunkCache::Pin pin = cache.pin(chunk, bytes, [&](std::span<std::byte> out) {
      std::fill(out.begin(), out.end(), std::byte(chunk));
      loaded_.push_back(chunk);
    });
    return pin.bytes()[0];
  }

  std::vector<std::size_t> loaded_;
};

TEST_F(ChunkCacheTest, TheLeastRecentlyUsedLeaves) {
  ChunkCache cache(30);
  cache.add_chunks(5);

  for (const std::size_t chunk : {0, 1, 2, 0, 3, 0, 1, 4, 0})
    EXPECT_EQ(first_byte_of(cache, chunk), std::byte(chunk));

  // 3 takes the place of 1, 1 that of 2, and 4 that of 3.
  EXPECT_THAT(loaded_, ElementsAre(0, 1, 2, 3, 1, 4));
  EXPECT_EQ(cache.most_bytes(), 30U);
  EXPECT_EQ(cache.loads(), 6);
}

TEST_F(ChunkCacheTest, SeveralLeaveForALargeOne) {
  ChunkCache cache(30);
  cache.add_chunks(4);
  for (const std::size_t chunk : {0, 1, 2})
    first_byte_of(cache, chunk);

  first_byte_of(cache, 3, 20);
  first_byte_of(cache, 2);

  EXPECT_THAT(loaded_, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(cache.most_bytes(), 30U);
}

TEST_F(ChunkCacheTest, WhatIsHeldStays) {
  ChunkCache cache(20);
  cache.add_chunks(3);
  const ChunkCache::Pin held =
      cache.pin(0, 10, [](std::span<std::byte> out) { out[0] = std::byte(42); });

  first_byte_of(cache, 1);
  first_byte_of(cache, 2);
  first_byte_of(cache, 1);

  EXPECT_EQ(held.bytes()[0], std::byte(42));
  EXPECT_THAT(loaded_, ElementsAre(1, 2, 1));
}

TEST_F(ChunkCacheTest, AChunkThatCannotBeReadIsTheSameErrorEachTimeAndOthersCanBeRead) {
  ChunkCache cache(20);
  cache.add_chunks(2);
  int tries = 0;
  const auto read_broken = [&]() -> std::string {
    try {
      cache.pin(0, 10, [&](std::span<std::byte>) {
        throw DataError("x.npy: rows 0 to 9: try " + std::to_string(++tries));
      });
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  };

  EXPECT_EQ(read_broken(), "x.npy: rows 0 to 9: try 1");
  EXPECT_EQ(read_broken(), "x.npy: rows 0 to 9: try 1");
  EXPECT_EQ(first_byte_of(cache, 1, 20), std::byte(1));
  EXPECT_EQ(read_broken(), "x.npy: rows 0 to 9: try 1");
}

TEST_F(ChunkCacheTest, WhatIsNotTheFilesFaultIsTriedAgain) {
  ChunkCache cache(20);
  cache.add_chunks(1);
  EXPECT_THROW(cache.pin(0, 20, [](std::span<std::byte>) { throw std::bad_alloc(); }),
               std::bad_alloc);

  EXPECT_EQ(first_byte_of(cache, 0, 20), std::byte(0));
}

// The budget holds three of the twenty chunks, so eight threads must wait for each other.
TEST_F(ChunkCacheTest, EightThreadsShareABudget) {
  constexpr std::size_t kChunks = 20;
  ChunkCache cache(3 * 64);
  cache.add_chunks(kChunks);
  std::atomic<int> loading{0};
  std::atomic<int> most_loading{0};

  const auto errors = testing::at_once(8, [&](std::size_t thread) {
    for (std::size_t i = 0; i < 2000; ++i) {
      const std::size_t chunk = (i * (2 * thread + 1) + thread) % kChunks;
      const ChunkCache::Pin pin = cache.pin(chunk, 64, [&](std::span<std::byte> out) {
        int most = most_loading;
        for (const int now = ++loading;
             most < now && !most_loading.compare_exchange_weak(most, now);) {
        }
        std::fill(out.begin(), out.end(), std::byte(chunk));
        --loading;
      });
      for (const std::byte byte : pin.bytes())
        TREADLE_EXPECTS(byte == std::byte(chunk), "a chunk is another one");
    }
  });

  EXPECT_EQ(errors, testing::kNoErrors);
  EXPECT_LE(cache.most_bytes(), 3U * 64);
  EXPECT_LE(most_loading, 3);
  EXPECT_GE(cache.loads(), static_cast<std::int64_t>(kChunks));
}

TEST_F(ChunkCacheTest, OneChunkIsReadOnceForAllWhoWantIt) {
  ChunkCache cache(64);
  cache.add_chunks(1);

  const auto errors = testing::at_once(8, [&](std::size_t) {
    for (int i = 0; i < 100; ++i)
      cache.pin(0, 64, [](std::span<std::byte> out) { out[0] = std::byte(1); });
  });

  EXPECT_EQ(errors, testing::kNoErrors);
  EXPECT_EQ(cache.loads(), 1);
}

}  // namespace
}  // namespace treadle::arrays
