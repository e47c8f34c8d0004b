#include <limits>

#include <gmock/gmock.h>

#include "array_fixture.h"

namespace treadle::arrays {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class NpyErrors : public ArrayFixture {
 protected:
  NpyErrors() { write_five(); }

  /// What is said about a file with these bytes.
  std::string error_in(std::string_view bytes) const {
    write_bytes("x.npy", bytes);
    return error();
  }
  std::string error_in_header(const std::string& header, std::string_view data = "",
                              int version = 1) const {
    return error_in(npy_bytes(header, data, version));
  }
  std::string error_with(const std::string& descr, bool fortran = false) const {
    return error_in_header(RawNpy{descr, fortran}.header("(5, 2)"), std::string(40, '\0'));
  }
};

TEST_F(NpyErrors, SayWhyAFileCannotBeRead) {
  std::filesystem::create_directories(file("folder"));

  EXPECT_EQ(error({{"inputs", path("none.npy")}}), "none.npy: no such file");
  EXPECT_TRUE(testing::tells(error({{"inputs", path("folder")}}), "", {"folder", "files"}));
  EXPECT_EQ(error({{"inputs", path("none-*.npy")}}), "none-*.npy: no file has a name like this");
  EXPECT_TRUE(testing::tells(error({{"inputs", path("folder/none/*.npy")}}), "", {"folder"}));
  EXPECT_TRUE(testing::tells(error({{"inputs", "/dev/null"}}), "", {"regular"}));
}

TEST_F(NpyErrors, SayWhatIsNoNpyFile) {
  EXPECT_TRUE(testing::tells(error_in(""), "x.npy", {"numpy.save", "writes"}));
  EXPECT_TRUE(testing::tells(error_in("a,b\n1,2\n"), "x.npy", {"numpy.save", "writes"}));
  EXPECT_TRUE(testing::tells(error_in("PK\x03\x04 and so on"), "x.npy", {"numpy.save", "archive"}));
  EXPECT_TRUE(testing::tells(error_in_header("{}", "", 4), "x.npy", {"4.0", "1.0", "3.0"}));
}

TEST_F(NpyErrors, SayWhereAFileIsCutOff) {
  const RawNpy raw;
  const std::string whole = npy_bytes(raw.header("(5, 2)"), std::string(40, '\0'));

  EXPECT_EQ(error_in(whole), "no error");
  EXPECT_TRUE(testing::tells(error_in(whole.substr(0, 3)), "x.npy", {"within", "header"}));
  EXPECT_TRUE(testing::tells(error_in(whole.substr(0, 9)), "x.npy", {"within", "header"}));
  EXPECT_TRUE(testing::tells(error_in(whole.substr(0, 60)), "x.npy", {"within", "header"}));
  EXPECT_TRUE(testing::tells(error_in(whole.substr(0, whole.size() - 3)), "x.npy",
                             {"5", "40", "37", "float32"}));
  EXPECT_TRUE(testing::tells(error_in(whole + "more"), "x.npy", {"5", "40", "44", "float32"}));
  EXPECT_TRUE(testing::tells(error_in(std::string("\x93NUMPY\x02\x00\xFF\xFF\xFF\x7F", 12)),
                             "x.npy", {"2147483647", "damaged"}));
}

TEST_F(NpyErrors, SayWhichHeadersCannotBeUnderstood) {
  const auto damaged = [](const std::string& header) {
    return "x.npy: the header cannot be understood: \"" + header + "\"";
  };
  for (const std::string header :
       {"{}", "hello", "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (5,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 5}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-5,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (5 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (5,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (5,)} more", "{'descr': '<f4",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (5,"}) {
    EXPECT_EQ(error_in_header(header), damaged(header));
  }
}

TEST_F(NpyErrors, SayHowToSaveWhatCannotBeRead) {
  const std::string known = "float32, float64, int64, int32 and uint8, little-endian, can be read";

  EXPECT_EQ(error_with(">f4"),
            "x.npy: the numbers are of the type \">f4\"; save the array as "
            "array.astype('<f4'): " +
                known);
  EXPECT_EQ(error_with("<f2"),
            "x.npy: the numbers are of the type \"<f2\"; save the array as "
            "array.astype('<f8'): " +
                known);
  EXPECT_EQ(error_with("<u2"),
            "x.npy: the numbers are of the type \"<u2\"; save the array as "
            "array.astype('<i8'): " +
                known);
  EXPECT_EQ(error_with("|b1"),
            "x.npy: the numbers are of the type \"|b1\"; save the array as "
            "array.astype('u1'): " +
                known);
  EXPECT_EQ(error_with("<c8"), "x.npy: the numbers are of the type \"<c8\"; " + known);
  EXPECT_EQ(error_with("|O"), "x.npy: holds Python objects; only numbers can be read: " + known);
  EXPECT_EQ(error_with("<U3"),
            "x.npy: holds texts; number them, and name the numbers in \"classes\": " + known);
  EXPECT_TRUE(testing::tells(error_with("<f4", true), "x.npy", {"numpy.ascontiguousarray"}));
  EXPECT_TRUE(testing::tells(
      error_in_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (5,)}"), "x.npy",
      {"records", "fields"}));
}

TEST_F(NpyErrors, CheckShapes) {
  const RawNpy raw;

  EXPECT_TRUE(testing::tells(error_in_header(raw.header("()"), std::string(4, '\0')), "x.npy",
                             {"1000", "20"}));
  EXPECT_TRUE(testing::tells(error_in_header(raw.header("(5, 0)")), "x.npy", {"5", "0"}));
  EXPECT_EQ(error_in_header(raw.header("(0, 3)")), "x.npy: there is no row");
  EXPECT_TRUE(testing::tells(error_in_header(raw.header("(4294967296, 4294967296)")), "x.npy",
                             {"4294967296", "array"}));
  std::string ones = "(";
  for (int i = 0; i < 33; ++i)
    ones += "1, ";
  EXPECT_TRUE(testing::tells(error_in_header(raw.header(ones + ")"), std::string(4, '\0')), "x.npy",
                             {"33", "32"}));
}

TEST_F(NpyErrors, SayWhichArraysDoNotFitEachOther) {
  write_table("other.npy", 6);
  write_table("wide.npy", 5, 4);
  write_table<double>("double.npy", 5);
  write<float>("none.npy", {0, 3}, {});

  EXPECT_TRUE(testing::tells(error({{"inputs", path("other.npy")}}), "y.npy", {"5", "6"}));
  EXPECT_TRUE(testing::tells(error({{"inputs", {path("x.npy"), path("wide.npy")}}}), "wide.npy",
                             {"4", "float32"}));
  EXPECT_TRUE(testing::tells(error({{"inputs", {path("x.npy"), path("double.npy")}}}), "double.npy",
                             {"float64", "float32"}));
  EXPECT_TRUE(testing::tells(error({{"inputs", {path("none.npy"), path("none.npy")}}}), "none.npy",
                             {"neither", "files"}));
  EXPECT_TRUE(testing::tells(error({{"weights", path("wide.npy")}}), "wide.npy", {"4", "weights"}));
  EXPECT_TRUE(
      testing::tells(error({{"access", "chunked"}, {"chunk_rows", 4}, {"resident_bytes", 47}}),
                     "x.npy", {"\"resident_bytes\"", "\"chunk_rows\"", "48", "47"}));
  EXPECT_EQ(error({{"access", "chunked"}, {"chunk_rows", 4}, {"resident_bytes", 48}}), "no error");
}

TEST_F(NpyErrors, NameColumnsThatDoNotFit) {
  write<float>("image.npy", {5, 1, 2}, std::vector<float>(10));

  EXPECT_TRUE(testing::tells(error({{"columns", {"a", "b"}}}), "x.npy", {"\"columns\"", "3", "2"}));
  EXPECT_TRUE(testing::tells(error({{"inputs", path("image.npy")}, {"columns", {"a", "b"}}}),
                             "image.npy", {"\"columns\"", "1", "2"}));
  EXPECT_TRUE(
      testing::tells(error({{"inputs", {{"a", path("x.npy")}}}, {"columns", {"a", "b", "c"}}}), "",
                     {"\"columns\"", "\"features\"", "\"inputs\""}));
  EXPECT_TRUE(testing::tells(error({{"inputs", {{"a", path("x.npy")}, {"b", path("y.npy")}}},
                                    {"columns", {{"a", {"p", "q", "r"}}, {"b", {"q"}}}}}),
                             "", {"\"q\"", "\"columns\""}));
  EXPECT_TRUE(testing::tells(error({{"inputs", Json::object()}}), "", {"inputs", "least"}));
}

TEST_F(NpyErrors, SayWhatCanBeDoneAboutMissingValues) {
  write<double>("x.npy", {5, 2}, {1, 2, kNan, 4, 5, 6, 7, 8, 9, kNan});
  write<double>("image.npy", {5, 1, 2}, {1, 2, 3, 4, 5, 6, 7, kNan, 9, 10});
  write<double>("nan.npy", {5}, {0, 1, 2, kNan, 4});
  write_table("table.npy", 5);
  write<double>("nothing.npy", {5}, std::vector<double>(5, kNan));
  const std::string drop = "; \"missing\": \"drop_row\" leaves such rows out";

  EXPECT_EQ(error(), "x.npy: row 1, column \"x0\": the value is missing (NaN)" + drop +
                         ", \"nan\" hands them to the transform \"impute\"\n"
                         "x.npy: row 4, column \"x1\": the value is missing (NaN)" +
                         drop + ", \"nan\" hands them to the transform \"impute\"");
  EXPECT_EQ(error({{"inputs", path("image.npy")}}),
            "image.npy: row 3, at [0, 1]: the value is missing (NaN)" + drop);
  EXPECT_TRUE(testing::tells(error({{"inputs", path("image.npy")}, {"missing", "nan"}}),
                             "image.npy", {"\"missing\"", "\"nan\"", "3", "0", "1"}));
  EXPECT_EQ(error({{"inputs", path("table.npy")}, {"target", path("nan.npy")}}),
            "nan.npy: row 3: the value is missing (NaN)" + drop);
  EXPECT_TRUE(testing::tells(
      error({{"inputs", path("table.npy")}, {"target", path("nan.npy")}, {"missing", "nan"}}),
      "nan.npy", {"\"missing\"", "\"nan\"", "3"}));
  EXPECT_TRUE(testing::tells(error({{"inputs", path("nothing.npy")}, {"missing", "drop_row"}}),
                             "nothing.npy", {"\"missing\"", "\"drop_row\"", "5"}));
}

TEST_F(NpyErrors, RefuseNumbersThatCannotBeTrainedOn) {
  write<double>("x.npy", {5}, {1, -kInfinity, 1e39, 4, 5});

  EXPECT_TRUE(testing::tells(error(), "x.npy", {"\"x0\"", "1", "infinity"}));
  EXPECT_TRUE(testing::tells(error({{"inputs", path("y.npy")}, {"target", path("x.npy")}}), "x.npy",
                             {"1", "infinity"}));
}

TEST_F(NpyErrors, ListFiveRowsAndCountTheRest) {
  write<double>("x.npy", {8}, std::vector<double>(8, kInfinity));
  write<float>("y.npy", {8}, std::vector<float>(8));

  EXPECT_TRUE(testing::tells(error(), "x.npy", {"\"x0\"", "1", "2", "3", "4"}));
}

TEST_F(NpyErrors, CheckTargets) {
  write<std::int64_t>("one.npy", {5}, {3, 3, 3, 3, 3});
  write<std::int64_t>("two.npy", {5}, {0, 1, 0, 7, 0});
  write<float>("half.npy", {5}, {0, 1, 1.5F, 0, 0});
  write<float>("image.npy", {5, 1, 2}, std::vector<float>(10));
  std::vector<std::int64_t> many(70000);
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i] = static_cast<std::int64_t>(i);
  write<std::int64_t>("many.npy", {70000}, many);
  const auto with = [&](const char* target, Json parameters = Json::object(),
                        const OpenRequest& request = {}) {
    parameters["target"] = path(target);
    return error(parameters, request);
  };

  EXPECT_EQ(with("one.npy"),
            "one.npy: there is one class only (3); a classifier needs at least two");
  EXPECT_EQ(with("two.npy", {{"classes", {"a", "b"}}}),
            "two.npy: row 3: class 7 has no name: \"classes\" names the 2 classes from 0 on");
  EXPECT_EQ(with("two.npy", {{"classes", {"a", "b"}}}, wanting(Task::kRegression)),
            "two.npy: \"classes\" names classes, but the target is numbers; set \"task\": "
            "\"classification\" in \"data\", or leave \"classes\" out");
  EXPECT_EQ(with("half.npy", {}, wanting(Task::kClassification)),
            "half.npy: row 2: 1.5 is no class; classes are integers (for numbers, set \"task\": "
            "\"regression\" in \"data\" and take a loss that works on numbers)");
  EXPECT_EQ(with("x.npy", {}, wanting(Task::kClassification)),
            "x.npy: classes are one number per row, got rows of the shape (3,)");
  EXPECT_EQ(with("image.npy"), "no error");
  EXPECT_EQ(with("many.npy", {{"inputs", path("many.npy")}}),
            "many.npy: row 65536: there are more than 65536 different values; that is too many for "
            "classes (for numbers, set \"task\": \"regression\" in \"data\" and take a loss that "
            "works on numbers)");
}

TEST_F(NpyErrors, CheckWeightsGroupsAndTimes) {
  write<float>("w.npy", {5}, {1, -1, 1, 1, 1});
  write<float>("zero.npy", {5}, {0, 0, 0, 0, 0});
  write<double>("inf.npy", {5}, {1, 1, 1, 1, kInfinity});
  write<float>("g.npy", {5}, {1, 2, 2.5F, 1, 1});

  EXPECT_TRUE(testing::tells(error({{"weights", path("w.npy")}}), "w.npy", {"1", "0"}));
  EXPECT_TRUE(testing::tells(error({{"weights", path("inf.npy")}}), "inf.npy", {"4", "0"}));
  EXPECT_TRUE(testing::tells(error({{"weights", path("zero.npy")}}), "zero.npy", {"0", "weight"}));
  write<float>("w.npy", {5}, {1, 0, 0, 0, 0});
  write<double>("x.npy", {5}, {kNan, 2, 3, 4, 5});
  EXPECT_TRUE(testing::tells(error({{"weights", path("w.npy")}, {"missing", "drop_row"}}), "w.npy",
                             {"0", "weight"}));
  write_five();
  EXPECT_TRUE(testing::tells(error({{"groups", path("g.npy")}}), "g.npy", {"2.5"}));
  EXPECT_TRUE(testing::tells(error({{"times", path("inf.npy")}}), "inf.npy", {"4", "finite"}));
}

TEST_F(NpyErrors, CheckWeightsOfPositions) {
  write<std::int64_t>("pixels.npy", {5, 1, 2}, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
  write<float>("w.npy", {5, 1, 2}, {1, 1, 1, 1, 1, -1, 1, 1, 1, 1});
  write<float>("zero.npy", {5, 1, 2}, std::vector<float>(10));
  write<double>("nan.npy", {5, 1, 2}, {1, 1, 1, kNan, 1, 1, 1, 1, 1, 1});
  write<float>("flat.npy", {5, 2}, std::vector<float>(10, 1));
  write<float>("few.npy", {4, 1, 2}, std::vector<float>(8, 1));
  const auto with = [&](const char* weights) {
    return error(
        {{"target",
          {{"path", path("pixels.npy")}, {"kind", "classes"}, {"weights", path(weights)}}}});
  };

  EXPECT_TRUE(testing::tells(with("w.npy"), "w.npy: row 2", {"weight", ">= 0", "-1"}));
  EXPECT_TRUE(testing::tells(with("zero.npy"), "zero.npy", {"every", "weight 0"}));
  EXPECT_TRUE(testing::tells(with("nan.npy"), "nan.npy: row 1", {"NaN", "\"drop_row\""}));
  EXPECT_TRUE(testing::tells(with("flat.npy"), "flat.npy", {"\"pixels\"", "(1, 2)", "(2,)"}));
  EXPECT_TRUE(testing::tells(with("few.npy"), "few.npy", {"4", "5"}));
}

TEST_F(NpyErrors, SayWhatLaterFilesMustFit) {
  write<double>("x.npy", {5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, kNan});
  write<std::int64_t>("y.npy", {5}, {0, 5, 0, 5, 0});
  write_table("wide.npy", 5);
  write<double>("nan.npy", {1, 2}, {kNan, 1});
  write_table("other/x.npy", 2, 2);
  write<std::int64_t>("other/y.npy", {2}, {5, 4});
  write_table("twice/x.npy", 5);
  const auto training = open({{"missing", "nan"}});
  const Json two_inputs = {{"a", path("wide.npy")}, {"b", path("twice/x.npy")}};
  const auto two = open({{"inputs", two_inputs}, {"target", path("y.npy")}});
  const Json one_name = {{"a", path("twice/x.npy")}, {"b", path("x.npy")}};
  const auto alike = open({{"inputs", one_name}, {"missing", "nan"}});
  const auto later = [&](Purpose purpose, const DataProvider& known, Json parameters) {
    if (!parameters.contains("missing"))
      parameters["missing"] = "nan";
    return message_of([&] { open_later(purpose, known, parameters); });
  };

  EXPECT_EQ(later(Purpose::kPredict, *training, {{"inputs", path("wide.npy")}}),
            "wide.npy: rows have the shape (3,), but the model was trained on rows of the shape "
            "(2,)");
  EXPECT_EQ(later(Purpose::kPredict, *training, {{"inputs", path("nan.npy")}}),
            "nan.npy: row 0, column \"x0\": the value is missing (NaN), which never happened in "
            "the training data");
  EXPECT_EQ(
      later(Purpose::kPredict, *training, {{"inputs", path("nan.npy")}, {"missing", "error"}}),
      "nan.npy: row 0, column \"x0\": the value is missing (NaN)");
  EXPECT_EQ(
      later(Purpose::kPredict, *training, {{"inputs", path("nan.npy")}, {"missing", "drop_row"}}),
      "nan.npy: row 0, column \"x0\": the value is missing (NaN); a row to predict cannot be "
      "dropped, train with \"missing\": \"nan\" and the transform \"impute\"");
  EXPECT_EQ(later(Purpose::kEvaluate, *training, {{"inputs", path("other")}}),
            "other/y.npy: row 1: unknown class 4; the model's classes are 0, 5");
  EXPECT_EQ(later(Purpose::kEvaluate, *training, {{"inputs", path("other/x.npy")}}),
            "other/x.npy: evaluating needs the targets of these rows as well; name a folder that "
            "has files called like those of the training");
  EXPECT_EQ(later(Purpose::kPredict, *two, {{"inputs", path("x.npy")}}),
            "x.npy: the model has the inputs a, b; name a folder that has files called like those "
            "of the training");
  EXPECT_EQ(later(Purpose::kPredict, *alike, {{"inputs", path("other")}}),
            "other: a folder cannot take the place of twice/x.npy and x.npy, which have one name");
  EXPECT_EQ(message_of([&] {
              OpenRequest request;
              request.purpose = Purpose::kPredict;
              open({}, request);
            }),
            "npy data for evaluation or prediction needs the state of a training");
}

TEST_F(NpyErrors, NumbersToPredictKeepTheirWidth) {
  const auto training = open({{"target", path("x.npy")}});
  write_five();

  EXPECT_EQ(message_of([&] {
              open_later(Purpose::kEvaluate, *training, {{"target", path("y.npy")}});
            }),
            "y.npy: rows have 1 numbers, but the model was trained to predict 3");
}

}  // namespace
}  // namespace treadle::arrays
