#include "csv_data.h"

#include <gmock/gmock.h>

#include "csv_fixture.h"

namespace treadle::csv {
namespace {

class CsvErrors : public CsvFixture {
 protected:
  static OpenRequest wanting(Task task) {
    OpenRequest request;
    request.task = task;
    return request;
  }
};

TEST_F(CsvErrors, SayWhyAFileCannotBeRead) {
  const auto open_path = [&](const std::string& path) {
    return message_of([&] { open({{"path", path}}); });
  };
  std::filesystem::create_directories(file("folder"));

  EXPECT_EQ(open_path(file("none.csv")), "none.csv: no such file");
  EXPECT_TRUE(testing::tells(open_path(file("folder")), "folder", {"\"path\"", "folder"}));
  EXPECT_TRUE(testing::tells(error(""), "x.csv", {"empty"}));
  EXPECT_TRUE(testing::tells(error("\n \n\n"), "x.csv", {"empty"}));
  EXPECT_TRUE(
      testing::tells(error("1\n2\n", {{"skip_rows", 2}}), "x.csv", {"\"skip_rows\"", "nothing"}));
  EXPECT_TRUE(testing::tells(error("a,b,y\n"), "x.csv", {"header"}));
  EXPECT_TRUE(testing::tells(error("a,y\n,1\n2,\n", {{"missing", "drop_row"}}), "x.csv",
                             {"\"missing\"", "\"drop_row\"", "2"}));
  EXPECT_TRUE(testing::tells(error("\xFF\xFE"
                                   "a\0,\0"),
                             "x.csv", {"UTF-16", "UTF-8"}));
  EXPECT_TRUE(testing::tells(error(std::string("a,y\n1,\0\x01,3\n", 11)), "x.csv:2", {"NUL"}));
  EXPECT_TRUE(
      testing::tells(error("a,y\n1,2\n3,\"4\n5,6\n"), "x.csv:3", {"quoted", "closed", "field"}));
  EXPECT_TRUE(testing::tells(error("a,y\n1,\"2\"3\n"), "x.csv:2", {"closing", "behind", "inside"}));
}

TEST_F(CsvErrors, NameFormatsThatAreNoText) {
  EXPECT_EQ(error("\x1F\x8B\x08 "), "x.csv: is compressed with gzip; unpack it");
  EXPECT_EQ(error("PK\x03\x04 "),
            "x.csv: is a workbook of a spreadsheet, or another archive; save the table as CSV");
  EXPECT_EQ(error("PAR1\x15 "), "x.csv: is Parquet; convert it to CSV");
  EXPECT_EQ(error("PAR1,y\n1,2\n"), "no error");
}

// A name in Latin-1, as spreadsheets write it: found while reading, so that a dry run finds it.
TEST_F(CsvErrors, NameTextThatIsNotUtf8) {
  const std::string told = ": is not UTF-8 text (byte 0xE9); save the file as UTF-8";

  EXPECT_EQ(error("a,y\n1,s\xE9tosa\n2,b\n"), "x.csv:2" + told);
  EXPECT_EQ(error("a,l\xE9nge\n1,2\n"), "x.csv:1" + told);
  EXPECT_EQ(error("a,c,y\n1,x,1\n2,\"x\n\xE9\",2\n", {{"categorical", {"c"}}}), "x.csv:4" + told);
  EXPECT_EQ(error("a,y\n\xE9,1\n"), "x.csv:2" + told);
  EXPECT_EQ(error("a,y\n1,x\xE9"), "x.csv:2" + told);
  EXPECT_EQ(error("\xE9\na,y\n1,2\n", {{"skip_rows", 1}}), "no error");
  // Rows on both sides of the piece a file is read in.
  std::string text = "a,y\n";
  for (int row = 0; row < 400000; ++row)
    text += "1,\xC3\xA9\n";
  EXPECT_EQ(error(text + "2,b\n"), "no error");
  EXPECT_EQ(error(text + "2,b\xE9\n"), "x.csv:400002" + told);
}

// RFC 3629: the first and last character of each length, and what is none.
TEST_F(CsvErrors, KnowWhatUtf8Is) {
  for (const char* text :
       {"\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(error("a,y\n1," + std::string(text) + "\n2,b\n"), "no error");
  }
  for (const char* text :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE2\x82", "\xFF"}) {
    EXPECT_THAT(error("a,y\n1," + std::string(text) + "\n2,b\n"),
                ::testing::StartsWith("x.csv:2: is not UTF-8 text (byte 0x"));
  }
}

TEST_F(CsvErrors, NameTheSeparatorThatFits) {
  const std::string one = "x.csv:1: the line has one field, ";
  const std::string seems = "; the separator seems to be ";

  EXPECT_EQ(error("a\tb\ty\n1\t2\t3\n"),
            one + "\"a\\tb\\ty\"" + seems + R"("\t". Set "separator": "\t")");
  EXPECT_EQ(error("a,b,y\n1,2,3\n", {{"separator", ";"}}),
            one + "\"a,b,y\"" + seems + R"(",". Set "separator": ",")");
  EXPECT_EQ(error("a|y\n1|2\n", {{"header", false}}),
            one + "\"a|y\"" + seems + R"("|". Set "separator": "|")");
  EXPECT_EQ(error("name;x, y;z\na;1,5;2,5\n"),
            "x.csv:1: the line has 2 fields, but the next one 3" + seems +
                R"(";". Set "separator": ";")");
  EXPECT_TRUE(testing::tells(error("a,b,y\n1,2\n"), "x.csv:2", {"3", "2"}));
  EXPECT_EQ(error("a;b,y\n1,2\n3,4\n"), "no error");
}

TEST_F(CsvErrors, NameTheSeparatorThatFitsWhereQuotesHideIt) {
  const auto cannot = [](const char* place, const char* separator, const char* other) {
    return std::string("x.csv:") + place + ": the line cannot be cut into fields at \"" +
           separator + "\"; the separator seems to be \"" + other + "\". Set \"separator\": \"" +
           other + "\"";
  };

  EXPECT_EQ(error("\"fixed acidity\";\"pH\";\"quality\"\n7.4;3.51;5\n"), cannot("1", ",", ";"));
  EXPECT_EQ(error("\"a\",\"y\"\n1,2\n", {{"separator", "\t"}}), cannot("1", "\\t", ","));
  EXPECT_EQ(error("\"a\"\t1\n\"b\"\t2\n", {{"header", false}}), cannot("1", ",", "\\t"));
  EXPECT_EQ(error("name;size\n\"a\";1\n"), cannot("2", ",", ";"));
  EXPECT_EQ(error("# a\nx, y;1\n\"z\";2\n", {{"header", false}, {"skip_rows", 1}}),
            cannot("3", ",", ";"));
  EXPECT_TRUE(testing::tells(error("\"a\"b,y\n1,2\n"), "x.csv:1", {"closing", "behind"}));
  EXPECT_TRUE(testing::tells(error("a,y\n1,\"2\";3\n"), "x.csv:2", {"closing", "behind"}));
}

TEST_F(CsvErrors, SayHowADecimalIsWritten) {
  const std::string told = "; write it with a decimal point, and thousands without a separator";

  EXPECT_EQ(error("a;y\n5,1;1\n5,2;2\n", {{"separator", ";"}}),
            "x.csv:2: column \"a\": expected a number, got \"5,1\"" + told +
                "\nx.csv:3: column \"a\": expected a number, got \"5,2\"" + told);
}

TEST_F(CsvErrors, CheckLabelsAndDistributions) {
  const auto with = [&](const char* text, const char* kind) {
    return error(text, {{"target",
                         Json::array({{{"name", "t"}, {"columns", {"p", "q"}}, {"kind", kind}}})}});
  };

  EXPECT_EQ(with("a,p,q\n1,0,1\n2,0.5,1\n", "labels"),
            "x.csv:3: column \"p\": a label must be 0 or 1, got \"0.5\"");
  EXPECT_EQ(with("a,p,q\n1,0,1\n2,0.5,0.4\n", "distribution"),
            "x.csv:3: the distribution \"t\" sums to 0.9; its columns must sum to 1 in each row");
  EXPECT_EQ(with("a,p,q\n1,-0.5,1.5\n", "distribution"),
            "x.csv:2: column \"p\": a probability must be >= 0, got \"-0.5\"");
  EXPECT_EQ(with("a,p,q\n1,0.3333,0.6667\n", "distribution"), "no error");
}

TEST_F(CsvErrors, CheckSeveralTargets) {
  const char* const text = "a,b,c,y\n1,2,x,p\n3,4,z,q\n";

  EXPECT_TRUE(
      testing::tells(error(text, {{"target", {"y", "y"}}}), "x.csv:1", {"\"y\"", "\"target\""}));
  EXPECT_TRUE(testing::tells(
      error(text, {{"target", Json::array({"y", {{"name", "y"}, {"columns", {"a"}}}})}}), "x.csv:1",
      {"\"y\"", "targets"}));
  EXPECT_TRUE(testing::tells(
      error(text, {{"target",
                    Json::array({{{"name", "t"}, {"columns", {"a", "b"}}, {"kind", "classes"}}})}}),
      "", {"\"t\"", "classes"}));
  EXPECT_TRUE(testing::tells(error(text, {{"columns", {"a"}}, {"inputs", {{"left", {"b"}}}}}), "",
                             {"\"columns\""}));
  EXPECT_TRUE(
      testing::tells(error(text, {{"columns", {"y", "y"}}}), "x.csv:1", {"\"y\"", "\"columns\""}));
}

TEST_F(CsvErrors, AreDataErrors) {
  write("");
  EXPECT_THROW(open(), DataError);
  write("a,y\n1,x,2\n");
  EXPECT_THROW(open(), DataError);
}

TEST_F(CsvErrors, NameTheRowThatHasAnotherNumberOfFields) {
  EXPECT_TRUE(testing::tells(error("a,b,y\n1,2,3\n4,5\n1,2,3,4\n"), "x.csv:3", {"3", "2", "4"}));
}

TEST_F(CsvErrors, ListFiveRowsAndCountTheRest) {
  EXPECT_TRUE(testing::tells(
      error("a,b,y\nx,z,0\nx,0,0\n0,0,0\n0,x\nx,0,0\nx,0,0\nx,x,x\n"), "x.csv:2",
      {"\"a\"", "\"x\"", "\"categorical\"", "\"missing_values\"", "\"b\"", "\"z\""}));
}

TEST_F(CsvErrors, RefuseNumbersThatCannotBeTrainedOn) {
  EXPECT_TRUE(testing::tells(error("a,y\n1,1\ninf,1\n"), "x.csv:3", {"\"a\"", "\"inf\""}));
  EXPECT_TRUE(
      testing::tells(error("a,y\n1,1\n1,-Infinity\n"), "x.csv:3", {"\"y\"", "\"-Infinity\""}));
  EXPECT_EQ(error("a,y\n1e39,1\n"), "no error");  // a transform may bring it within float32
  EXPECT_TRUE(
      testing::tells(error("a,y\n-1e309,1\n"), "x.csv:2", {"\"a\"", "\"-1e309\"", "float64"}));
  EXPECT_TRUE(testing::tells(error("a,y\nNaN,1\n", {{"missing_values", Json::array({""})}}),
                             "x.csv:2",
                             {"\"a\"", "\"NaN\"", "\"categorical\"", "\"missing_values\""}));
}

TEST_F(CsvErrors, SayWhatCanBeDoneAboutMissingValues) {
  EXPECT_TRUE(
      testing::tells(error("a,y\n1,1\nNA,2\n ,3\n"), "x.csv:3",
                     {"\"a\"", "\"NA\"", "\"missing\"", "\"drop_row\"", "\"nan\"", "\"impute\""}));
  EXPECT_TRUE(testing::tells(error("a,y\n1,1\n2,null\n", {{"missing", "nan"}}), "x.csv:3",
                             {"\"y\"", "\"null\"", "\"missing\"", "\"nan\""}));
  EXPECT_TRUE(
      testing::tells(error("a,c,y\n1,,1\n2,NA,2\n", {{"missing", "nan"}, {"categorical", {"c"}}}),
                     "x.csv", {"\"c\"", "category"}));
}

TEST_F(CsvErrors, NameColumnsThatAreNotThereAndThoseThatAre) {
  const char* const text = "sepal,petal,species\n1,2,A\n3,4,B\n";

  EXPECT_TRUE(testing::tells(error(text, {{"target", "specis"}}), "x.csv:1",
                             {"\"specis\"", "\"target\"", "\"species\""}));
  EXPECT_TRUE(testing::tells(error(text, {{"columns", {"sepal", "q"}}}), "x.csv:1",
                             {"\"q\"", "\"columns\""}));
  EXPECT_TRUE(
      testing::tells(error(text, {{"target", 3}}), "x.csv:1", {"\"target\"", "3", "0", "2"}));
  EXPECT_TRUE(testing::tells(error("1,2,A\n", {{"target", "species"}, {"header", false}}), "x.csv",
                             {"\"header\"", "\"target\"", "\"species\"", "0"}));
  EXPECT_TRUE(testing::tells(error(text, {{"columns", {"sepal", "sepal"}}}), "x.csv:1",
                             {"\"sepal\"", "\"columns\""}));
  EXPECT_TRUE(testing::tells(error(text, {{"weight", -1}}), "x.csv:1",
                             {"\"species\"", "\"target\"", "\"weight\""}));
  EXPECT_TRUE(testing::tells(error(text, {{"categorical", {"species"}}}), "x.csv:1",
                             {"\"species\"", "\"categorical\""}));
  EXPECT_TRUE(testing::tells(error("y\n1\n"), "x.csv:1", {"\"y\"", "predict"}));
}

TEST_F(CsvErrors, RefuseHeadersThatAreNone) {
  EXPECT_TRUE(
      testing::tells(error("a,b,a,y\n1,2,3,4\n"), "x.csv:1", {"\"a\"", "\"header\"", "0", "2"}));
  EXPECT_TRUE(testing::tells(error("5.1,3.5,0\n4.9,3.0,1\n"), "x.csv:1",
                             {"\"header\"", "5.1", "3.5", "0"}));
  EXPECT_TRUE(testing::tells(error(",a,y\n0,1,2\n"), "x.csv:1", {"\"columns\"", "0"}));
  EXPECT_EQ(error(",a,y\n0,1,2\n", {{"columns", {"a"}}}), "no error");
  EXPECT_TRUE(
      testing::tells(error("a;b;y\n1;2;3\n"), "x.csv:1", {"\"a;b;y\"", "\";\"", "\"separator\""}));
  std::string wide = "c0";
  for (int i = 1; i <= table::kMostColumns; ++i)
    wide += ",c" + std::to_string(i);
  EXPECT_TRUE(testing::tells(error(wide + "\n1\n"), "x.csv:1", {"65537", "65536"}));
}

TEST_F(CsvErrors, CheckTheTarget) {
  EXPECT_TRUE(testing::tells(error("a,species\n1,setosa\n2,setosa\n"), "x.csv",
                             {"\"species\"", "\"setosa\""}));
  EXPECT_TRUE(testing::tells(error("a,y\n1,2.5\n2,3\n", {}, wanting(Task::kClassification)),
                             "x.csv", {"\"y\"", "\"task\"", "\"regression\"", "\"data\"", "2.5"}));
  EXPECT_TRUE(testing::tells(error("a,y\n1,A\n2,3\n", {}, wanting(Task::kRegression)), "x.csv:2",
                             {"\"y\"", "\"A\"", "\"regression\""}));
  EXPECT_TRUE(testing::tells(error("a,y\n1,1\n2,A\n"), "x.csv:3",
                             {"\"y\"", "\"A\"", "\"task\"", "\"classification\"", "\"data\""}));
}

TEST_F(CsvErrors, CheckWeightsAndTimes) {
  EXPECT_TRUE(testing::tells(error("a,w,y\n1,-2,A\n2,1,B\n", {{"weight", "w"}}), "x.csv:2",
                             {"\"w\"", "\"-2\"", "0"}));
  EXPECT_TRUE(
      testing::tells(error("a,w,y\n1,0,A\n2,0,B\n", {{"weight", "w"}}), "x.csv", {"0", "weight"}));
  EXPECT_TRUE(testing::tells(error("t,a,y\nsoon,1,2\n", {{"time", "t"}}), "x.csv:2",
                             {"\"t\"", "\"soon\"", "8601", "ISO"}));
  EXPECT_TRUE(testing::tells(error("t,a,y\n2016-01-01,1,2\n5,1,2\n", {{"time", "t"}}), "x.csv:3",
                             {"\"t\"", "\"5\"", "8601", "ISO"}));
  EXPECT_TRUE(testing::tells(error("t,a,y\n5,1,2\n2016-01-01,1,2\n", {{"time", "t"}}), "x.csv:3",
                             {"\"t\"", "\"2016-01-01\""}));
}

TEST_F(CsvErrors, RefuseCategoriesWithoutEnd) {
  std::string text = "id,y\n";
  for (int i = 0; i <= std::int64_t{65536}; ++i)
    text += "n" + std::to_string(i) + ",1\n";

  EXPECT_TRUE(
      testing::tells(error(text, {{"categorical", {"id"}}}), "x.csv:65538", {"\"id\"", "65536"}));
}

TEST_F(CsvErrors, OfLaterFilesSayWhatTheModelKnows) {
  const Json parameters = {{"categorical", {"color"}}, {"missing", "nan"}};
  write("color,n,m,kind\nred,1,1,no\nblue,2,,yes\n");
  const auto trained = open(parameters);
  const auto later = [&](Purpose purpose, const char* text, Json how) {
    return message_of([&] { open_later(purpose, *trained, text, how); });
  };

  EXPECT_EQ(later(Purpose::kPredict, "hue,n\nred,1\n", parameters),
            "x.csv:1: the model needs the columns \"color\", \"m\", which are not there; the "
            "columns are hue, n");
  EXPECT_THAT(later(Purpose::kEvaluate, "color,n,m\nred,1,1\n", parameters),
              ::testing::AllOf(
                  ::testing::HasSubstr("x.csv:1: the model needs the column \"kind\" (the target"),
                  ::testing::HasSubstr("the columns are color, n, m")));
  EXPECT_EQ(later(Purpose::kPredict, "n,n,m,color\n1,1,1,red\n", parameters),
            "x.csv:1: 2 columns are named \"n\"");
  EXPECT_EQ(
      later(Purpose::kEvaluate, "color,n,m,kind\nrad,1,1,nope\n", parameters),
      "x.csv:2: column \"color\": unknown category \"rad\"; the "
      "training data had \"blue\", \"red\"; did you mean \"red\"?\n"
      "x.csv:2: column \"kind\": unknown class \"nope\"; the model's classes are \"no\", \"yes\"");
  EXPECT_EQ(later(Purpose::kPredict, "color,n,m\nred,x,1\nred,,\n", parameters),
            "x.csv:2: column \"n\": expected a number, got \"x\"; the model was trained without "
            "missing values in this column, so leave the row out, or train with the text in "
            "\"missing_values\"\n"
            "x.csv:3: column \"n\": the value is missing, which never happened in the training "
            "data. Leave the row out, or train with \"handle_unknown\": \"missing\"");
  EXPECT_EQ(later(Purpose::kPredict, "color,n,m\nred,1,n/a\n", parameters),
            "x.csv:2: column \"m\": expected a number, got \"n/a\"; if it stands for a missing "
            "value, write one of \"\", \"NA\", \"NaN\", \"nan\", \"null\", \"?\", the "
            "\"missing_values\" of the training");
  EXPECT_EQ(
      later(Purpose::kPredict, "color,n,m\nred,,1\n", {{"categorical", {"color"}}}),
      "x.csv:2: column \"n\": the value is missing, and the model was trained without missing "
      "values. Leave the row out, or train with \"missing\": \"nan\" and the transform "
      "\"impute\"");
  // No command that predicts has an option for the separator.
  EXPECT_EQ(later(Purpose::kPredict, "color;n;m\nred;1;1\n", parameters),
            "x.csv:1: the line has one field, \"color;n;m\"; the separator seems to be \";\", and "
            "the model reads files with \",\", as its training data had: write the file with that");
  EXPECT_EQ(later(Purpose::kPredict, "color,n,m\nred,1,\n",
                  {{"categorical", {"color"}}, {"missing", "drop_row"}}),
            "x.csv:2: column \"m\": the value is missing; a row to predict cannot be dropped, "
            "train with \"missing\": \"nan\" and the transform \"impute\"");
}

TEST_F(CsvErrors, OfLaterFilesWithoutHeaderCountTheirFields) {
  write("1,A,2\n3,B,4\n");
  const Json parameters = {{"header", false}, {"target", 1}};
  const auto trained = open(parameters);
  const auto later = [&](Purpose purpose) {
    return message_of([&] { open_later(purpose, *trained, "1\n", parameters); });
  };

  EXPECT_EQ(later(Purpose::kPredict),
            "x.csv: expected 3 fields, as in the training data, or the 2 to predict from, got 1");
  EXPECT_EQ(later(Purpose::kEvaluate), "x.csv: expected 3 fields, as in the training data, got 1");
}

TEST_F(CsvErrors, NeedTheTrainingsStateForLaterFiles) {
  write("a\n1\n");
  OpenRequest request;
  request.purpose = Purpose::kPredict;

  EXPECT_EQ(message_of([&] { open({}, request); }),
            "a table to evaluate or predict needs the state of a training");
}

TEST_F(CsvErrors, OfParametersNameTheParameter) {
  EXPECT_EQ(message_of([&] {
              make({{"separator", "\n"}});
            }),
            "/separator: must be one ASCII character that does not end a line");
  EXPECT_EQ(message_of([&] {
              make({{"separator", "\""}});
            }),
            "/separator: must be a character, and another one than \"quote\"");
}

}  // namespace
}  // namespace treadle::csv
