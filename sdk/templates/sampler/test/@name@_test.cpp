#include <treadle/sdk.h>

#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/data/sampler_contract.h>

namespace {

using namespace treadle::testing;
using Rows = std::vector<std::int64_t>;

std::unique_ptr<treadle::Sampler> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::Sampler>("@name@", std::move(parameters));
}

SamplerCase case_of(std::string name, nlohmann::json parameters = {}) {
  SamplerCase one{std::move(name), [parameters] { return make(parameters); }};
  one.each_row_once = false;
  return one;
}

SamplerCase in_order() {
  SamplerCase one = case_of("InOrder", {{"times", 3}, {"shuffle", false}});
  one.is_random = false;
  return one;
}

SamplerCase once() {
  SamplerCase one = case_of("Once", {{"times", 1}});
  one.each_row_once = true;
  return one;
}

// What every sampler keeps: one case for each configuration that may behave differently.
INSTANTIATE_TEST_SUITE_P(@Name@, SamplerContract,
                         ::testing::Values(case_of("Defaults"), in_order(), once()), CaseName());

Rows pass_of(const treadle::Sampler& sampler, const Rows& rows, std::uint64_t seed) {
  const treadle::MatrixRows data(plain_data(10));
  const auto order = sampler.order({&data, rows, 4, 0, seed});
  Rows got(static_cast<std::size_t>(order->size()));
  order->fill(0, got);
  return got;
}

TEST(@Name@, TakesEachRowSeveralTimesInARow) {
  EXPECT_EQ(pass_of(*make({{"times", 3}, {"shuffle", false}}), {8, 2}, 1),
            (Rows{8, 8, 8, 2, 2, 2}));
}

TEST(@Name@, APassIsThatManyTimesAsLong) {
  EXPECT_EQ(make({{"times", 5}})->samples(7), 35);
}

TEST(@Name@, ShufflesRowsAndLeavesRepetitionsTogether) {
  const Rows got = pass_of(*make(), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 3);

  ASSERT_EQ(got.size(), 20U);
  for (std::size_t i = 0; i < got.size(); i += 2)
    EXPECT_EQ(got[i], got[i + 1]) << "position " << i;
  EXPECT_FALSE(std::is_sorted(got.begin(), got.end()));
}

}  // namespace
