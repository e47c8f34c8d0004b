#include "csv_data.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include "csv_fixture.h"

namespace treadle::csv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Values = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class CsvDataTest : public CsvFixture {
 protected:
  static std::vector<std::string> names(const CsvData& data) {
    std::vector<std::string> names;
    for (const Column& column : data.spec().inputs[0].columns)
      names.push_back(column.name);
    return names;
  }
  static OpenRequest wanting(Task task, std::optional<TargetKind> loss = std::nullopt) {
    OpenRequest request;
    request.task = task;
    if (loss)
      request.target_kinds[""] = {*loss};
    return request;
  }
};

TEST_F(CsvDataTest, PredictsTheLastColumnFromAllOthersByDefault) {
  write("a,b,y\n1,2.5,3\n-4,5e1,6\n");

  const auto data = open();

  EXPECT_THAT(names(*data), ElementsAre("a", "b"));
  EXPECT_EQ(data->spec().inputs[0].name, "features");
  EXPECT_EQ(data->spec().inputs[0].shape, std::vector<std::int64_t>{2});
  EXPECT_EQ(data->spec().targets[0], number_target("y"));
  EXPECT_FALSE(data->spec().has_weights);
  EXPECT_EQ(features(*data), (Values{1, 2.5, -4, 50}));
  EXPECT_EQ(targets(*data), (Values{3, 6}));
  EXPECT_EQ(rows(*data).targets(0).sizes(), (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(batch(*data).inputs[0].scalar_type(), at::kFloat);
}

TEST_F(CsvDataTest, FindsColumnsByNameAndByIndexFromBothEnds) {
  write("id,a,b,c,y\n9,1,2,3,4\n");

  const auto data = open({{"target", -2}, {"columns", Json::array({"y", 1})}});

  EXPECT_THAT(names(*data), ElementsAre("y", "a"));
  EXPECT_EQ(features(*data), (Values{4, 1}));
  EXPECT_EQ(data->spec().targets[0].name, "c");
}

TEST_F(CsvDataTest, ReadsFilesWithoutHeaderAfterSkippedLines) {
  write("150,4,setosa\n1,2,0\n3,4,1\n");

  const auto data = open({{"header", false}, {"skip_rows", 1}});

  EXPECT_THAT(names(*data), ElementsAre("column_0", "column_1"));
  EXPECT_EQ(features(*data), (Values{1, 2, 3, 4}));
  EXPECT_EQ(rows(*data).describe_row(1), file().string() + ":3");
}

TEST_F(CsvDataTest, ReadsEveryLineEndQuoteAndBlank) {
  const std::string bom = "\xEF\xBB\xBF";
  write(
      bom +
      "\r\n\"a \"\"b\"\"\",c,y\r\n 1 ,\"2\",\"no, \"\"thanks\"\"\nreally\"\r\n\n   \n\t3,4\t ,yes");

  const auto data = open();

  EXPECT_THAT(names(*data), ElementsAre("a \"b\"", "c"));
  EXPECT_EQ(features(*data), (Values{1, 2, 3, 4}));
  EXPECT_THAT(data->spec().targets[0].class_names, ElementsAre("no, \"thanks\"\nreally", "yes"));
  EXPECT_EQ(rows(*data).describe_row(0), file().string() + ":3");
  EXPECT_EQ(rows(*data).describe_row(1), file().string() + ":7");
}

TEST_F(CsvDataTest, ReadsOldMacLineEndsAndOtherSeparatorsAndQuotes) {
  write("a\tb\ty\r1\t'2'\tA\r3\t4\t'B'\r");

  const auto data = open({{"separator", "\t"}, {"quote", "'"}});

  EXPECT_EQ(features(*data), (Values{1, 2, 3, 4}));
  EXPECT_THAT(data->spec().targets[0].class_names, ElementsAre("A", "B"));
}

TEST_F(CsvDataTest, TakesQuotesForTextWhereThereAreNone) {
  write("a,y\n1,\"A\n2,5\"\n");

  const auto data = open({{"quote", ""}});

  EXPECT_THAT(data->spec().targets[0].class_names, ElementsAre("\"A", "5\""));
}

// Rows and quoted line ends fall on every offset around the edges of the pieces a file is read in.
TEST_F(CsvDataTest, DoesNotDependOnWhereAPieceOfTheFileEnds) {
  std::string text = "a,b,y\r\n";
  Values expected;
  for (int row = 0; text.size() < (std::size_t{5} << 20); ++row) {
    const std::string padding(static_cast<std::size_t>(row % 61), row % 2 == 0 ? '"' : '\n');
    text += std::to_string(row) + ".25,\"" + std::to_string(row) + "\",\"A" + padding +
            (padding.size() % 2 == 1 && row % 2 == 0 ? "\"" : "") + "\"\r\n";
    expected.insert(expected.end(), {row + 0.25, static_cast<double>(row)});
  }
  write(text);

  const auto data = open({}, wanting(Task::kClassification));

  EXPECT_EQ(features(*data), expected);
}

TEST_F(CsvDataTest, HoldsNumbersExactlyInTheNarrowestType) {
  const auto of = [&](const std::string& x, const std::string& y) {
    write("a,b,y\n1,0.5,2\n,-3e9,4\n" + x + ",7," + y + "\n");
    return open({{"missing", "nan"}}, {});
  };

  const auto narrow = of("16777216", "-0.25");
  const auto wide = of("16777217", "0.1");

  EXPECT_EQ(batch(*narrow).inputs[0].scalar_type(), at::kFloat);
  EXPECT_EQ(batch(*narrow).targets[0].scalar_type(), at::kFloat);
  EXPECT_EQ(features(*narrow)[4], 16777216);
  EXPECT_EQ(batch(*wide).inputs[0].scalar_type(), at::kDouble);
  EXPECT_EQ(batch(*wide).targets[0].scalar_type(), at::kDouble);
  EXPECT_EQ(wide->spec().inputs[0].dtype, at::kDouble);
  EXPECT_EQ(features(*wide)[4], 16777217);
  EXPECT_EQ(targets(*wide), (Values{2, 4, 0.1}));
}

TEST_F(CsvDataTest, HoldsAllNumbersWhereverTheFirstFractionStands) {
  for (const int fraction : {0, 1023, 1024, 2500, 4999}) {
    std::string text = "a,y\n";
    Values expected;
    for (int row = 0; row < 5000; ++row) {
      text += std::to_string(row) + (row == fraction ? ".1" : "") + ",0\n";
      expected.push_back(row == fraction ? std::stod(std::to_string(row) + ".1") : row);
    }
    write(text);

    const auto data = open();

    EXPECT_EQ(batch(*data).inputs[0].scalar_type(), at::kDouble);
    EXPECT_EQ(features(*data), expected) << fraction;
  }
}

TEST_F(CsvDataTest, TextLabelsAreClassesInOrder) {
  write("a,y\n1,pear\n2,apple\n3,pear\n");

  const auto data = open();

  EXPECT_EQ(data->spec().targets[0], class_target("y", {"apple", "pear"}));
  EXPECT_EQ(targets(*data), (Values{1, 0, 1}));
  EXPECT_EQ(rows(*data).targets(0).scalar_type(), at::kLong);
}

TEST_F(CsvDataTest, NumberLabelsAreClassesWhenTheTaskOrTheLossSaysSo) {
  write("a,y\n1,10\n2,-1\n3,9.0\n4,9\n");

  for (const OpenRequest& request :
       {wanting(Task::kClassification), wanting(Task::kAuto, TargetKind::kClasses)}) {
    const auto data = open({}, request);
    EXPECT_THAT(data->spec().targets[0].class_names, ElementsAre("-1", "9", "10"));
    EXPECT_EQ(targets(*data), (Values{2, 0, 1, 1}));
  }
  for (const OpenRequest& request :
       {wanting(Task::kAuto), wanting(Task::kRegression, TargetKind::kClasses),
        wanting(Task::kAuto, TargetKind::kNumbers)}) {
    EXPECT_EQ(targets(*open({}, request)), (Values{10, -1, 9, 9}));
  }
}

TEST_F(CsvDataTest, EncodesCategoriesInOrder) {
  write("color,size,n,y\nred,10,1,0\nblue,9,2,1\nred,9,3,1\n");

  const auto data = open({{"categorical", Json::array({"color", 1})}});

  const PortSpec& categories = data->spec().inputs[1];
  EXPECT_THAT(names(*data), ElementsAre("n"));
  EXPECT_EQ(categories.name, "categories");
  EXPECT_EQ(categories.role, treadle::Role::kCategories);
  EXPECT_EQ(categories.dtype, at::kLong);
  EXPECT_THAT(categories.columns[0].categories, ElementsAre("blue", "red"));
  EXPECT_THAT(categories.columns[1].categories, ElementsAre("9", "10"));
  EXPECT_EQ(features(*data), (Values{1, 2, 3}));
  EXPECT_EQ(input(*data, "categories"), (Values{1, 1, 0, 0, 1, 0}));
  EXPECT_EQ(batch(*data).inputs[1].scalar_type(), at::kLong);
}

TEST_F(CsvDataTest, PassesMissingValuesOnAsNanAndMinusOne) {
  write("color,n,m,y\nred,,1,0\n?,-999,2,1\nblue,-999.0,3,0\n");

  const auto data =
      open({{"categorical", {"color"}}, {"missing", "nan"}, {"missing_values", {"", "?", "-999"}}});

  const std::vector<Column>& columns = data->spec().inputs[0].columns;
  const Column& color = data->spec().inputs[1].columns[0];
  EXPECT_TRUE(color.may_be_missing);
  EXPECT_THAT(color.categories, ElementsAre("blue", "red"));
  EXPECT_TRUE(columns[0].may_be_missing);
  EXPECT_FALSE(columns[1].may_be_missing);
  EXPECT_THAT(features(*data), ::testing::Pointwise(::testing::NanSensitiveDoubleEq(),
                                                    {kNan, 1., kNan, 2., kNan, 3.}));
  EXPECT_EQ(input(*data, "categories"), (Values{1, -1, 0}));
}

TEST_F(CsvDataTest, LeavesOutRowsWithMissingValues) {
  write("a,y\n1,A\n,B\n3,\n4,B\n");

  const auto data = open({{"missing", "drop_row"}});

  EXPECT_EQ(features(*data), (Values{1, 4}));
  EXPECT_EQ(rows(*data).describe_row(1), file().string() + ":5");
}

TEST_F(CsvDataTest, KeepsTextsAsTheyStandInTheRowsThatWereRead) {
  using Texts = std::vector<std::vector<std::string>>;
  write("id,a,note,y\n007,1,\"two\nlines\",A\n008,,left out,B\n\n009, 3 ,\"a \"\"b\"\"\",B\n");
  const auto data = open({{"missing", "drop_row"}, {"columns", {"a"}}});

  const auto& source = *data->ask<SourceColumns>();

  EXPECT_EQ(source.texts({"note", "id"}), (Texts{{"two\nlines", "a \"b\""}, {"007", "009"}}));
  EXPECT_EQ(source.texts({"y"}), (Texts{{"A", "B"}}));
  EXPECT_EQ(message_of([&] { source.texts({"nte"}); }),
            "x.csv: no column \"nte\" to keep; the columns are \"id\", \"a\", \"note\", \"y\"; "
            "did you mean \"note\"?");
}

TEST_F(CsvDataTest, KeepsTextsOfColumnsWithoutAHeaderByNumber) {
  write("1,x\n2,y\n");
  const auto data = open({{"header", false}});

  EXPECT_EQ(data->ask<SourceColumns>()->texts({data->spec().inputs[0].columns[0].name}),
            (std::vector<std::vector<std::string>>{{"1", "2"}}));
}

TEST_F(CsvDataTest, SaysThatAFileWasChangedBeforeItsTextsWereRead) {
  write("a,y\n1,A\n2,B\n");
  const auto data = open();
  write("a,y\n1,A\n");

  EXPECT_EQ(message_of([&] { data->ask<SourceColumns>()->texts({"a"}); }),
            "x.csv: was changed while it was read, or can only be read once");
}

TEST_F(CsvDataTest, WeighsRowsByColumn) {
  write("a,w,y\n1,2,A\n2,1,B\n3,0.5,B\n4,1,B\n");

  const auto by_column = open({{"weight", "w"}});

  EXPECT_EQ(values(batch(*by_column).weights), (Values{2, 1, 0.5, 1}));
  EXPECT_TRUE(by_column->spec().has_weights);
  EXPECT_THAT(names(*by_column), ElementsAre("a"));
}

TEST_F(CsvDataTest, ReadsGroupsAndTimes) {
  write(
      "a,who,when,y\n1,bob,2016-07-01 01:00,2\n2,ann,2016-07-01,3\n3,bob,2016-07-01T00:00:30,4\n");

  const auto data = open({{"group", "who"}, {"time", "when"}});

  EXPECT_EQ(values(rows(*data).groups()), (Values{0, 1, 0}));
  EXPECT_EQ(values(rows(*data).timestamps()), (Values{1467334800, 1467331200, 1467331230}));
  EXPECT_THAT(names(*data), ElementsAre("a"));
  write("a,when,y\n1,5,2\n2,4.5,3\n");
  EXPECT_EQ(values(rows(*open({{"time", "when"}})).timestamps()), (Values{5, 4.5}));
}

TEST_F(CsvDataTest, ContentHashIsThatOfTheContent) {
  write("a,y\n1,2\n3,4\n");
  const std::string hash = open()->content_hash();

  write("a;y\r\n1.0;2\r\n3;4e0");
  EXPECT_EQ(open({{"separator", ";"}})->content_hash(), hash);
  write("a,y\n1,2\n3,5\n");
  EXPECT_NE(open()->content_hash(), hash);
  write("b,y\n1,2\n3,4\n");
  EXPECT_NE(open()->content_hash(), hash);
}

TEST_F(CsvDataTest, EachPlainTargetIsATargetOfItsOwn) {
  write("a,price,kind,b\n1,10,x,3\n2,20,y,4\n");

  const auto data = open({{"target", Json::array({"kind", 1})}});

  ASSERT_EQ(data->spec().targets.size(), 2U);
  EXPECT_EQ(data->spec().targets[0], class_target("kind", {"x", "y"}));
  EXPECT_EQ(data->spec().targets[1], number_target("price"));
  EXPECT_EQ(targets(*data, 0), (Values{0, 1}));
  EXPECT_EQ(targets(*data, 1), (Values{10, 20}));
  EXPECT_THAT(names(*data), ElementsAre("a", "b"));
}

TEST_F(CsvDataTest, TargetsOfSeveralColumnsAreNumbersLabelsOrADistribution) {
  write("a,x,y,wet,cold,p,q,r\n1,10,11,0,1,0.25,0.5,0.25\n2,20,21,1,1,0,0,1\n");
  const Json targets_of = {
      {{"name", "place"}, {"columns", {"x", "y"}}},
      {{"name", "tags"}, {"columns", {"wet", "cold"}}, {"kind", "labels"}},
      {{"name", "mix"}, {"columns", {"p", "q", -1}}, {"kind", "distribution"}}};

  const auto data = open({{"target", targets_of}});

  const std::vector<TargetSpec>& specs = data->spec().targets;
  EXPECT_EQ(specs[0], number_target("place", 2));
  EXPECT_EQ(specs[1], (TargetSpec{"tags", TargetKind::kLabels, {2}, {"wet", "cold"}}));
  EXPECT_EQ(specs[2], (TargetSpec{"mix", TargetKind::kDistribution, {3}, {"p", "q", "r"}}));
  EXPECT_EQ(targets(*data, 0), (Values{10, 11, 20, 21}));
  EXPECT_EQ(targets(*data, 1), (Values{0, 1, 1, 1}));
  EXPECT_EQ(targets(*data, 2), (Values{0.25, 0.5, 0.25, 0, 0, 1}));
  EXPECT_EQ(batch(*data).targets[1].scalar_type(), at::kFloat);
}

TEST_F(CsvDataTest, TheLossOfATargetDecidesItsKind) {
  write("a,y,z,u,v\n1,10,0,1,0\n2,20,1,0,1\n");
  OpenRequest request;
  request.target_kinds = {{"y", {TargetKind::kClasses}}, {"tags", {TargetKind::kLabels}}};
  const Json parameters = {{"target", {"y", "z", {{"name", "tags"}, {"columns", {"u", "v"}}}}}};

  const auto data = open(parameters, request);

  EXPECT_EQ(data->spec().targets[0].kind, TargetKind::kClasses);
  EXPECT_EQ(data->spec().targets[1].kind, TargetKind::kNumbers);
  EXPECT_EQ(data->spec().targets[2].kind, TargetKind::kLabels);
}

TEST_F(CsvDataTest, WholeNumbersAreClassesWhereNoLossTakesNumbers) {
  const auto request_for = [](std::vector<TargetKind> kinds) {
    OpenRequest request;
    request.target_kinds = {{"y", std::move(kinds)}};
    return request;
  };
  const OpenRequest classes = request_for({TargetKind::kClasses, TargetKind::kDistribution});
  const OpenRequest any = request_for({TargetKind::kClasses, TargetKind::kNumbers});
  write("a,y\n1,2\n2,0\n3,2\n");

  const auto counted = open({}, classes);
  const auto open_kind = open({}, any);

  EXPECT_EQ(counted->spec().targets[0], class_target("y", {"0", "2"}));
  EXPECT_EQ(targets(*counted), (Values{1, 0, 1}));
  EXPECT_EQ(open_kind->spec().targets[0].kind, TargetKind::kNumbers);
  write("a,y\n1,0.5\n2,0\n");
  EXPECT_EQ(open({}, classes)->spec().targets[0].kind, TargetKind::kNumbers);
  EXPECT_THAT(error("a,y\n1,24\n2,21.6\n", {}, classes),
              ::testing::HasSubstr("has numbers like 21.6; classes are texts or integers"));
}

TEST_F(CsvDataTest, SeveralColumnsAreLabelsOrADistributionWhereTheLossNeedsThem) {
  write("a,u,v\n1,0,1\n2,1,0\n");
  const Json parameters = {{"target", {{{"name", "tags"}, {"columns", {"u", "v"}}}}}};
  const auto kind_for = [&](TargetKind other) {
    OpenRequest request;
    request.target_kinds = {{"", {TargetKind::kClasses, other}}};
    return open(parameters, request)->spec().targets[0].kind;
  };

  EXPECT_EQ(kind_for(TargetKind::kLabels), TargetKind::kLabels);
  EXPECT_EQ(kind_for(TargetKind::kDistribution), TargetKind::kDistribution);
  EXPECT_EQ(kind_for(TargetKind::kNumbers), TargetKind::kNumbers);
}

TEST_F(CsvDataTest, InputsNamesTheColumnsOfEachPort) {
  write("a,color,b,size,y\n1,red,3,S,5\n2,blue,4,L,6\n");
  const Json inputs = {{"left", {"b", "color", "a"}}, {"right", {"size"}}};

  const auto data = open({{"inputs", inputs}, {"categorical", {"color", "size"}}});

  const std::vector<PortSpec>& ports = data->spec().inputs;
  ASSERT_EQ(ports.size(), 3U);
  EXPECT_EQ(ports[0].name, "left");
  EXPECT_EQ(ports[1].name, "left.categories");
  EXPECT_EQ(ports[2].name, "right.categories");
  EXPECT_EQ(input(*data, "left"), (Values{3, 1, 4, 2}));
  EXPECT_EQ(input(*data, "left.categories"), (Values{1, 0}));
  EXPECT_EQ(input(*data, "right.categories"), (Values{1, 0}));
  const auto later = open_later(Purpose::kPredict, *data, "size,b,a,color\nL,7,8,red\n",
                                {{"inputs", inputs}, {"categorical", {"color", "size"}}});
  EXPECT_EQ(later->spec().inputs, ports);
  EXPECT_EQ(input(*later, "left"), (Values{7, 8}));
  EXPECT_EQ(input(*later, "right.categories"), (Values{0}));
}

TEST_F(CsvDataTest, ATargetIsAnInputTooWhereItIsNamedAsOne) {
  write("a,y\n1,10\n2,20\n");
  const Json parameters = {{"columns", {"a", "y"}}, {"target", "y"}};

  const auto data = open(parameters);
  const auto classes = open({{"columns", {"y"}}, {"categorical", {"y"}}, {"target", "y"}},
                            wanting(Task::kClassification));

  EXPECT_EQ(features(*data), (Values{1, 10, 2, 20}));
  EXPECT_EQ(targets(*data), (Values{10, 20}));
  EXPECT_EQ(input(*classes, "categories"), (Values{0, 1}));
  EXPECT_EQ(targets(*classes), (Values{0, 1}));
  const auto later = open_later(Purpose::kPredict, *data, "y,a\n5,6\n", parameters);
  EXPECT_EQ(features(*later), (Values{6, 5}));
}

TEST_F(CsvDataTest, StateKeepsSeveralTargets) {
  const char* const text = "a,kind,p,q\n1,x,0.5,0.5\n2,y,1,0\n";
  const Json parameters = {
      {"target", {"kind", {{"name", "mix"}, {"columns", {"p", "q"}}, {"kind", "distribution"}}}}};
  write(text);
  const auto trained = open(parameters);

  const auto again = open_later(Purpose::kEvaluate, *trained, "q,p,kind,a\n0,1,y,5\n", parameters);

  EXPECT_EQ(again->spec(), trained->spec());
  EXPECT_EQ(targets(*again, 0), (Values{1}));
  EXPECT_EQ(targets(*again, 1), (Values{1, 0}));
}

constexpr const char* kTraining = "color,n,w,kind\nred,1,1,no\nblue,2,2,yes\ngreen,3,1,no\n";

TEST_F(CsvDataTest, ReadsTheSameRowsInChunks) {
  std::string text = "note,a,y\n";
  for (int row = 0; row < 20'000; ++row) {
    text += row % 5 == 0 ? "\"two\nlines, \"\"quoted\"\"\"," : "one,";
    text += std::to_string(row) + ",0.5" + (row % 3 == 0 ? "\r\n\n" : "\n");
  }
  text.pop_back();
  write(text);
  const auto whole = open({{"columns", {"a"}}});
  const auto data = open({{"columns", {"a"}}, {"in_memory", false}});

  std::vector<Batch> batches;
  const auto stream = data->stream(999);
  for (Batch batch; stream->next(batch);)
    batches.push_back(batch);
  EXPECT_EQ(values(Batch::join(batches).inputs[0]), features(*whole));
  EXPECT_EQ(data->ask<SourceColumns>()->texts({"note"}),
            whole->ask<SourceColumns>()->texts({"note"}));
}

class CsvDataLaterTest : public CsvDataTest {
 protected:
  const Json parameters_ = {{"categorical", {"color"}}, {"weight", "w"}};

  std::unique_ptr<CsvData> training() const {
    write(kTraining);
    return open(parameters_);
  }
};

TEST_F(CsvDataLaterTest, PredictsFromColumnsInAnyOrderWithoutTarget) {
  const auto trained = training();

  const auto data =
      open_later(Purpose::kPredict, *trained, "extra,n,color\nx,5,green\ny,6,blue\n", parameters_);

  EXPECT_EQ(data->spec().inputs, trained->spec().inputs);
  EXPECT_TRUE(data->spec().targets.empty());
  EXPECT_FALSE(data->spec().has_weights);
  EXPECT_EQ(features(*data), (Values{5, 6}));
  EXPECT_EQ(input(*data, "categories"), (Values{1, 0}));
  EXPECT_TRUE(batch(*data).targets.empty());
}

TEST_F(CsvDataLaterTest, EvaluatesWithTheClassesAndWeightsOfTheTraining) {
  const auto trained = training();

  const auto data = open_later(Purpose::kEvaluate, *trained,
                               "kind,w,n,color\nyes,2,1,red\nyes,1,2,red\n", parameters_);

  EXPECT_EQ(data->spec(), trained->spec());
  EXPECT_EQ(targets(*data), (Values{1, 1}));
  EXPECT_EQ(values(batch(*data).weights), (Values{2, 1}));
}

TEST_F(CsvDataLaterTest, FindsColumnsByPositionWhereThereIsNoHeader) {
  const Json parameters = {{"header", false}, {"target", 1}, {"columns", {2, 0}}};
  write("1,A,2\n3,B,4\n");
  const auto trained = open(parameters);

  const auto whole = open_later(Purpose::kPredict, *trained, "5,?,6\n", parameters);
  const auto features_only = open_later(Purpose::kPredict, *trained, "5,6\n", parameters);
  const auto evaluated = open_later(Purpose::kEvaluate, *trained, "5,B,6\n", parameters);

  EXPECT_EQ(features(*trained), (Values{2, 1, 4, 3}));
  EXPECT_EQ(features(*whole), (Values{6, 5}));
  EXPECT_EQ(features(*features_only), (Values{6, 5}));
  EXPECT_EQ(features(*evaluated), (Values{6, 5}));
  EXPECT_EQ(targets(*evaluated), (Values{1}));
}

TEST_F(CsvDataLaterTest, StateSurvivesAFileThatIsReadLater) {
  const auto trained = training();

  const auto later = open_later(Purpose::kPredict, *trained, "n,color\n5,green\n", parameters_);
  const auto again = open_later(Purpose::kEvaluate, *later, kTraining, parameters_);

  EXPECT_EQ(again->spec(), trained->spec());
  EXPECT_EQ(again->content_hash(), trained->content_hash());
}

TEST_F(CsvDataLaterTest, RefusesAStateThatIsDamaged) {
  const auto trained = training();
  const auto damaged = [&](auto&& change) {
    StateDict state = trained->state();
    change(state);
    return message_of([&] { make()->load_state(state); });
  };

  EXPECT_EQ(damaged([](StateDict& state) {
              Json layout = state.value("layout");
              layout["targets"][0]["columns"][0]["index"] = 4;
              state.put("layout", layout);
            }),
            "stored columns of the data contradict each other");
  EXPECT_EQ(message_of([&] { make()->load_state(StateDict()); }),
            "saved state has no value \"layout\"; it has nothing");
}

// Real files, read as they are; a user of the project need not have them.
TEST_F(CsvDataTest, ReadsPublicDataSets) {
  const char* const folder = std::getenv("TREADLE_DATA");
  if (folder == nullptr || !std::filesystem::exists(folder))
    GTEST_SKIP() << "needs the public data sets; set TREADLE_TEST_DATA_SETS to their folder";
  const auto path = [&](const char* name) {
    return (std::filesystem::path(folder) / name).string();
  };
  const OpenRequest request = wanting(Task::kAuto, TargetKind::kClasses);

  const auto iris =
      open({{"path", path("iris.csv")}, {"header", false}, {"skip_rows", 1}}, request);
  const auto digits = open({{"path", path("digits.csv")}, {"header", false}}, request);
  const auto series = open({{"path", path("ETTh1.csv")}, {"time", "date"}, {"target", "OT"}});

  EXPECT_EQ(rows(*iris).rows(), 150);
  EXPECT_EQ(iris->spec().targets[0].class_count(), 3);
  EXPECT_EQ(rows(*digits).rows(), 1797);
  EXPECT_EQ(digits->spec().targets[0].class_count(), 10);
  EXPECT_EQ(rows(*series).rows(), 17420);
  EXPECT_EQ(values(rows(*series).timestamps())[1], 1467334800);
}

}  // namespace
}  // namespace treadle::csv
