#include "csv_data.h"

#include <gmock/gmock.h>

#include "csv_fixture.h"
#include "label_dictionary.h"

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
  EXPECT_EQ(open_path(file("folder")), "folder: is a folder; \"path\" must name a file");
  EXPECT_EQ(error(""), "x.csv: the file is empty");
  EXPECT_EQ(error("\n \n\n"), "x.csv: the file is empty");
  EXPECT_EQ(error("1\n2\n", {{"skip_rows", 2}}),
            "x.csv: nothing follows the lines that \"skip_rows\" passes over");
  EXPECT_EQ(error("a,b,y\n"), "x.csv: there is a header line, but no row");
  EXPECT_EQ(error("a,y\n,1\n2,\n", {{"missing", "drop_row"}}),
            "x.csv: each of the 2 rows has a missing value, and \"missing\" is \"drop_row\"");
  EXPECT_EQ(error("\xFF\xFE"
                  "a\0,\0"),
            "x.csv: is UTF-16; save it as UTF-8");
  EXPECT_EQ(error(std::string("a,y\n1,\0\x01,3\n", 11)),
            "x.csv:2: there is a NUL byte; this is not a text file");
  EXPECT_EQ(error("a,y\n1,2\n3,\"4\n5,6\n"),
            "x.csv:3: a quoted field is not closed before the end of the file");
  EXPECT_EQ(error("a,y\n1,\"2\"3\n"),
            "x.csv:2: there is text behind the closing quote of a field; a quote inside quotes is "
            "written twice");
}

TEST_F(CsvErrors, AreDataErrors) {
  write("");
  EXPECT_THROW(open(), DataError);
  write("a,y\n1,x,2\n");
  EXPECT_THROW(open(), DataError);
}

TEST_F(CsvErrors, NameTheRowThatHasAnotherNumberOfFields) {
  EXPECT_EQ(error("a,b,y\n1,2,3\n4,5\n1,2,3,4\n"),
            "x.csv:3: expected 3 fields, got 2\n"
            "x.csv:4: expected 3 fields, got 4");
}

TEST_F(CsvErrors, ListFiveRowsAndCountTheRest) {
  EXPECT_EQ(error("a,b,y\nx,z,0\nx,0,0\n0,0,0\n0,x\nx,0,0\nx,0,0\nx,x,x\n"),
            "x.csv:2: column \"a\": expected a number, got \"x\"; list the column in "
            "\"categorical\" or the text in \"missing_values\"\n"
            "x.csv:2: column \"b\": expected a number, got \"z\"; list the column in "
            "\"categorical\" or the text in \"missing_values\"\n"
            "x.csv:3: column \"a\": expected a number, got \"x\"; list the column in "
            "\"categorical\" or the text in \"missing_values\"\n"
            "x.csv:5: expected 3 fields, got 2\n"
            "x.csv:6: column \"a\": expected a number, got \"x\"; list the column in "
            "\"categorical\" or the text in \"missing_values\"\n"
            "and 4 more");
}

TEST_F(CsvErrors, RefuseNumbersThatCannotBeTrainedOn) {
  EXPECT_EQ(error("a,y\n1,1\ninf,1\n"),
            "x.csv:3: column \"a\": got \"inf\": infinity cannot be trained on");
  EXPECT_EQ(error("a,y\n1,1\n1,-Infinity\n"),
            "x.csv:3: column \"y\": got \"-Infinity\": infinity cannot be trained on");
  EXPECT_EQ(error("a,y\n1e39,1\n"),
            "x.csv:2: column \"a\": got \"1e39\", which is too large for float32; \"dtype\": "
            "\"float64\" holds more");
  OpenRequest wide;
  wide.dtype = at::kDouble;
  EXPECT_EQ(error("a,y\n1e39,1\n", {}, wide), "no error");
  EXPECT_EQ(error("a,y\n-1e309,1\n", {}, wide),
            "x.csv:2: column \"a\": got \"-1e309\", which is too large for float64");
  EXPECT_EQ(error("a,y\nNaN,1\n", {{"missing_values", Json::array({""})}}),
            "x.csv:2: column \"a\": expected a number, got \"NaN\"; list the column in "
            "\"categorical\" or the text in \"missing_values\"");
}

TEST_F(CsvErrors, SayWhatCanBeDoneAboutMissingValues) {
  EXPECT_EQ(
      error("a,y\n1,1\nNA,2\n ,3\n"),
      "x.csv:3: column \"a\": the value is missing (\"NA\"); \"missing\": \"drop_row\" leaves "
      "such rows out, \"nan\" hands them to the transform \"impute\"\n"
      "x.csv:4: column \"a\": the value is missing; \"missing\": \"drop_row\" leaves such "
      "rows out, \"nan\" hands them to the transform \"impute\"");
  EXPECT_EQ(error("a,y\n1,1\n2,null\n", {{"missing", "nan"}}),
            "x.csv:3: column \"y\": the value is missing (\"null\"); \"missing\": \"nan\" is for "
            "columns to predict from only");
  EXPECT_EQ(error("a,c,y\n1,,1\n2,NA,2\n", {{"missing", "nan"}, {"categorical", {"c"}}}),
            "x.csv: column \"c\" is a category, but has missing values only");
}

TEST_F(CsvErrors, NameColumnsThatAreNotThereAndThoseThatAre) {
  const char* const text = "sepal,petal,species\n1,2,A\n3,4,B\n";

  EXPECT_EQ(error(text, {{"target", "specis"}}),
            "x.csv:1: there is no column \"specis\" for \"target\"; the "
            "columns are sepal, petal, species; did you mean \"species\"?");
  EXPECT_EQ(error(text, {{"columns", {"sepal", "q"}}}),
            "x.csv:1: there is no column \"q\" for \"columns\"; the columns are sepal, petal, "
            "species");
  EXPECT_EQ(error(text, {{"target", 3}}),
            "x.csv:1: \"target\" is column 3, but there are 3 columns (0 to 2)");
  EXPECT_EQ(error("1,2,A\n", {{"target", "species"}, {"header", false}}),
            "x.csv: the file has no header line (\"header\": false), so \"target\" must be an "
            "index from 0, got \"species\"");
  EXPECT_EQ(error(text, {{"columns", {"sepal", "sepal"}}}),
            "x.csv:1: column \"sepal\" is named twice in \"columns\"; a column has one use");
  EXPECT_EQ(error(text, {{"weight", -1}}),
            "x.csv:1: column \"species\" is named as \"target\" and in \"weight\"; a column has "
            "one use");
  EXPECT_EQ(error(text, {{"categorical", {"species"}}}),
            "x.csv:1: column \"species\" is in \"categorical\", but not among the columns to "
            "predict from");
  EXPECT_EQ(error("y\n1\n"), "x.csv:1: no column is left to predict \"y\" from; the columns are y");
}

TEST_F(CsvErrors, RefuseHeadersThatAreNone) {
  EXPECT_EQ(error("a,b,a,y\n1,2,3,4\n"),
            "x.csv:1: columns 0 and 2 are both named \"a\"; if the file has no header line, set "
            "\"header\": false");
  EXPECT_EQ(error("5.1,3.5,0\n4.9,3.0,1\n"),
            "x.csv:1: the header line has numbers for names (5.1, 3.5, 0); if it is the first row "
            "of data, set \"header\": false");
  EXPECT_EQ(error(",a,y\n0,1,2\n"),
            "x.csv:1: column 0 has no name; give it one, or say in \"columns\" which columns to "
            "use");
  EXPECT_EQ(error(",a,y\n0,1,2\n", {{"columns", {"a"}}}), "no error");
  EXPECT_EQ(error("a;b;y\n1;2;3\n"),
            "x.csv:1: the line has one field, \"a;b;y\"; is the separator \";\"?");
  std::string wide = "c0";
  for (int i = 1; i <= kMostColumns; ++i)
    wide += ",c" + std::to_string(i);
  EXPECT_EQ(error(wide + "\n1\n"), "x.csv:1: there are 65537 columns; at most 65536 can be read");
}

TEST_F(CsvErrors, JudgeTheTarget) {
  EXPECT_EQ(error("a,species\n1,setosa\n2,setosa\n"),
            "x.csv: target \"species\" has one class only (\"setosa\"); a classifier needs at "
            "least two");
  EXPECT_EQ(error("a,y\n1,2.5\n2,3\n", {}, wanting(Task::kClassification)),
            "x.csv: target \"y\" has numbers like 2.5; classes are texts or integers (for numbers, "
            "set \"task\": \"regression\" in \"data\" and take a loss that works on numbers)");
  EXPECT_EQ(error("a,y\n1,A\n2,3\n", {}, wanting(Task::kRegression)),
            "x.csv:2: column \"y\": expected a number, got \"A\"; the task \"regression\" needs "
            "numbers");
  EXPECT_EQ(error("a,y\n1,1\n2,A\n"),
            "x.csv:3: column \"y\": expected a number, got \"A\"; if these are classes, set "
            "\"task\": \"classification\" in \"data\"");
}

TEST_F(CsvErrors, JudgeWeightsAndTimes) {
  EXPECT_EQ(error("a,w,y\n1,-2,A\n2,1,B\n", {{"weight", "w"}}),
            "x.csv:2: column \"w\": a weight must be >= 0, got \"-2\"");
  EXPECT_EQ(error("a,w,y\n1,0,A\n2,0,B\n", {{"weight", "w"}}), "x.csv: every row has the weight 0");
  EXPECT_EQ(error("a,y\n1,A\n2,B\n", {{"class_weights", {{"C", 1}}}}),
            "x.csv: \"class_weights\" names the class \"C\", which is not there; the classes are "
            "\"A\", \"B\"");
  EXPECT_EQ(error("a,y\n1,2\n", {{"class_weights", "balanced"}}),
            "x.csv: \"class_weights\" needs classes, but the target \"y\" is numbers");
  EXPECT_EQ(error("t,a,y\nsoon,1,2\n", {{"time", "t"}}),
            "x.csv:2: column \"t\": expected a number or an ISO 8601 date or date and time, got "
            "\"soon\"");
  EXPECT_EQ(error("t,a,y\n2016-01-01,1,2\n5,1,2\n", {{"time", "t"}}),
            "x.csv:3: column \"t\": expected an ISO 8601 date or date and time, got \"5\"");
  EXPECT_EQ(error("t,a,y\n5,1,2\n2016-01-01,1,2\n", {{"time", "t"}}),
            "x.csv:3: column \"t\": expected a number, got \"2016-01-01\"");
}

TEST_F(CsvErrors, RefuseCategoriesWithoutEnd) {
  std::string text = "id,y\n";
  for (int i = 0; i <= LabelDictionary::kMostLabels; ++i)
    text += "n" + std::to_string(i) + ",1\n";

  EXPECT_EQ(error(text, {{"categorical", {"id"}}}),
            "x.csv:65538: column \"id\" has more than 65536 different values; that is too many for "
            "classes or categories");
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
  EXPECT_EQ(later(Purpose::kEvaluate, "color,n,m\nred,1,1\n", parameters),
            "x.csv:1: the model needs the column \"kind\", which is not there; the columns are "
            "color, n, m");
  EXPECT_EQ(later(Purpose::kPredict, "n,n,m,color\n1,1,1,red\n", parameters),
            "x.csv:1: there are 2 columns \"n\"");
  EXPECT_EQ(later(Purpose::kEvaluate, "color,n,m,kind\nrad,1,1,nope\n", parameters),
            "x.csv:2: column \"color\": unknown category \"rad\"; the "
            "training data had \"blue\", \"red\"; did you mean \"red\"?\n"
            "x.csv:2: column \"kind\": unknown class \"nope\"; the model knows \"no\", \"yes\"");
  EXPECT_EQ(later(Purpose::kPredict, "color,n,m\nred,x,1\nred,,\n", parameters),
            "x.csv:2: column \"n\": expected a number, got \"x\"\n"
            "x.csv:3: column \"n\": the value is missing, which never happened in the training "
            "data");
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
            "csv data for evaluation or prediction needs the state of a training");
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
