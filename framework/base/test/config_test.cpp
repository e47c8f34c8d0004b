#include <treadle/base/config.h>

#include <gtest/gtest.h>

#include <treadle/base/document.h>

#include "test/failure_of.h"

namespace treadle {
namespace {

Config sample_config() {
  return Config({{"rate", 0.5},
                 {"count", 3},
                 {"whole", 5.0},
                 {"big", 3000000000},
                 {"huge", 18446744073709551615U},
                 {"negative", -1},
                 {"name", "fast"},
                 {"flag", true},
                 {"nothing", nullptr},
                 {"warmup", "5%"},
                 {"sizes", {16, 32}},
                 {"betas", {0.9, 1}},
                 {"names", {"a", "b"}},
                 {"mixed", {1, "b"}},
                 {"inner", {{"depth", 2}}},
                 {"list", {{{"use", "x"}}, {{"use", "y"}}}}},
                "/model");
}

TEST(Config, ReadsEveryDeclaredType) {
  const Config config = sample_config();

  EXPECT_TRUE(config.get<bool>("flag"));
  EXPECT_EQ(config.get<int>("count"), 3);
  EXPECT_EQ(config.get<std::int64_t>("big"), 3000000000);
  EXPECT_EQ(config.get<std::uint64_t>("huge"), 18446744073709551615U);
  EXPECT_EQ(config.get<double>("rate"), 0.5);
  EXPECT_EQ(config.get<double>("count"), 3.0);
  EXPECT_EQ(config.get<std::string>("name"), "fast");
  EXPECT_EQ(config.get<Duration>("warmup"), (Duration{0.05, Duration::Unit::kFraction}));
  EXPECT_EQ(config.get<std::vector<std::int64_t>>("sizes"), (std::vector<std::int64_t>{16, 32}));
  EXPECT_EQ(config.get<std::vector<double>>("betas"), (std::vector<double>{0.9, 1}));
  EXPECT_EQ(config.get<std::vector<std::string>>("names"), (std::vector<std::string>{"a", "b"}));
}

TEST(Config, TreatsNullAsAbsent) {
  const Config config = sample_config();

  EXPECT_FALSE(config.has("nothing"));
  EXPECT_FALSE(config.has("no such key"));
  EXPECT_EQ(config.find<int>("nothing"), std::nullopt);
  EXPECT_EQ(config.get_or<int>("nothing", 7), 7);
  EXPECT_EQ(config.get_or<int>("count", 7), 3);
}

TEST(Config, SaysWhatItExpectedAndWhatItGot) {
  const Config config = sample_config();

  EXPECT_EQ(failure_of([&] { config.get<double>("name"); }),
            "/model/name: expected a number, got \"fast\" (text)");
  EXPECT_EQ(failure_of([&] { config.get<int>("whole"); }),
            "/model/whole: expected a whole number, got 5.0");
  EXPECT_EQ(failure_of([&] { config.get<int>("big"); }),
            "/model/big: expected a whole number from -2147483648 to 2147483647, got 3000000000");
  EXPECT_EQ(failure_of([&] { config.get<std::int64_t>("huge"); }),
            "/model/huge: expected a whole number from -9223372036854775808 to "
            "9223372036854775807, got 18446744073709551615");
  EXPECT_EQ(failure_of([&] { config.get<std::uint64_t>("negative"); }),
            "/model/negative: expected a whole number from 0 to 18446744073709551615, got -1");
  EXPECT_EQ(failure_of([&] { config.get<bool>("count"); }),
            "/model/count: expected true or false, got 3");
  EXPECT_EQ(failure_of([&] { config.get<std::string>("sizes"); }),
            "/model/sizes: expected text, got an array");
  EXPECT_EQ(failure_of([&] { config.get<std::vector<double>>("rate"); }),
            "/model/rate: expected an array, got 0.5");
  EXPECT_EQ(failure_of([&] { config.get<std::vector<std::int64_t>>("mixed"); }),
            "/model/mixed: element 1: expected a whole number, got \"b\" (text)");
  EXPECT_EQ(failure_of([&] { config.get<Duration>("count"); }),
            "/model/count: expected a duration such as \"5%\", \"10ep\" or \"2h\", got 3");
  EXPECT_EQ(failure_of([&] { config.get<int>("absent"); }),
            "/model: required key \"absent\" is missing");
  EXPECT_EQ(failure_of([&] { config.child("count"); }), "/model/count: expected an object, got 3");
  EXPECT_EQ(failure_of([&] { config.children("sizes"); }),
            "/model/sizes: element 0: expected an object, got 16");
  EXPECT_EQ(failure_of([&] { config.children("inner"); }),
            "/model/inner: expected an array, got an object");
}

TEST(Config, HandsOutPartsThatKnowTheirPlaceAndOutliveIt) {
  std::optional<Config> child;
  std::vector<Config> children;
  {
    const Config config = sample_config();
    child = config.child("inner");
    children = config.children("list");
  }

  EXPECT_EQ(child->pointer(), "/model/inner");
  EXPECT_EQ(child->get<int>("depth"), 2);
  ASSERT_EQ(children.size(), 2U);
  EXPECT_EQ(children[1].pointer(), "/model/list/1");
  EXPECT_EQ(children[1].get<std::string>("use"), "y");
}

TEST(Config, NamesTheLineOfTheDocumentItCameFrom) {
  const std::shared_ptr<const Document> document =
      Document::parse("{\"optimizer\": {\n  \"learning_rate\": \"fast\"}}", "my.json");
  const Config config = Config(document->value(), "", document).child("optimizer");

  EXPECT_EQ(failure_of([&] { config.get<double>("learning_rate"); }),
            "my.json:2: /optimizer/learning_rate: expected a number, got \"fast\" (text)");
  EXPECT_EQ(failure_of([&] { config.fail("", "needs a model"); }),
            "my.json:1: /optimizer: needs a model");
}

TEST(Config, ExpectsAnObject) {
  EXPECT_THROW(Config(nlohmann::json(3)), ContractViolation);
}

}  // namespace
}  // namespace treadle
