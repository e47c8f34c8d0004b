#include <treadle/base/document.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <treadle/base/random.h>

#include "test/failure_of.h"

namespace treadle {
namespace {

using nlohmann::json;

std::string refusal_of(std::string_view text) {
  return failure_of([&] { Document::parse(text, "my.json"); });
}

std::string spot(const Document& document, std::string_view pointer) {
  const Place place = document.place_of(pointer);
  return std::to_string(place.line) + ":" + std::to_string(place.column);
}

TEST(Document, KnowsWhereEachValueWasWritten) {
  const auto document = Document::parse(
      "// a comment\n"
      "{\n"
      "  \"name\": \"ü\", \"seed\" : 7, /* two\n"
      "  lines */ \"optimizer\": {\"use\": \"adamw\", \"a/b\": [1, -2.5e3,\n"
      "    true, [null], {\"x\": \"q\\\"}\"}]}\n"
      "}\n",
      "my.json");

  EXPECT_EQ(document->value(), json::parse(R"({"name": "ü", "seed": 7, "optimizer": {"use": "adamw",
                            "a/b": [1, -2500.0, true, [null], {"x": "q\"}"}]}})"));
  EXPECT_EQ(spot(*document, ""), "2:1");
  EXPECT_EQ(spot(*document, "/name"), "3:3");
  EXPECT_EQ(spot(*document, "/seed"), "3:16");  // characters, not bytes
  EXPECT_EQ(spot(*document, "/optimizer"), "4:12");
  EXPECT_EQ(spot(*document, "/optimizer/a~1b/0"), "4:50");
  EXPECT_EQ(spot(*document, "/optimizer/a~1b/1"), "4:53");
  EXPECT_EQ(spot(*document, "/optimizer/a~1b/2"), "5:5");
  EXPECT_EQ(spot(*document, "/optimizer/a~1b/3/0"), "5:12");
  EXPECT_EQ(spot(*document, "/optimizer/a~1b/4/x"), "5:20");
  EXPECT_EQ(document->place_of("/seed").text(), "my.json:3");
}

TEST(Document, FallsBackToTheNearestWrittenAncestor) {
  const auto document = Document::parse("{\"a\":\n{\"b\":\n[1]}}", "my.json");

  EXPECT_EQ(spot(*document, "/a/b/7"), "2:2");
  EXPECT_EQ(spot(*document, "/a/x/y/z"), "1:2");
  EXPECT_EQ(spot(*document, "/x"), "1:1");
}

TEST(Document, AcceptsAByteOrderMarkAndWindowsLines) {
  const auto document = Document::parse("\xEF\xBB\xBF{\"a\": 1,\r\n \"b\": 2}", "my.json");

  EXPECT_EQ(document->value()["b"], 2);
  EXPECT_EQ(spot(*document, "/a"), "1:2");
  EXPECT_EQ(spot(*document, "/b"), "2:2");
}

TEST(Document, RefusesASecondByteOrderMark) {
  EXPECT_EQ(refusal_of("\xEF\xBB\xBF\xEF\xBB\xBF{\"a\": 1}"),
            "my.json:1: there are two byte order marks; remove one");
  EXPECT_EQ(refusal_of("\xEF\xBB\xBF{\xEF\xBB\xBF\"a\": 1}"),
            "my.json:1: expected a key in double quotes or \"}\", got \"\xEF\xBB\xBF\"");
}

TEST(Document, EndsALineCommentWhereTheLineEndsOnAnySystem) {
  const auto document = Document::parse("{// old\r\"a\": 1, // new\r\n\"b\": 2}", "my.json");

  EXPECT_EQ(document->value(), nlohmann::json({{"a", 1}, {"b", 2}}));
  EXPECT_EQ(spot(*document, "/a"), "1:9");
  EXPECT_EQ(spot(*document, "/b"), "2:1");
}

TEST(Document, RefusesANulByteWhereverItStands) {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {"{\"a\": 1}\n\0 and more"sv, "{// cut\n// \0 \"a\": 1}"sv, "{\n\"a\": \"b\0c\"}"sv}) {
    EXPECT_EQ(refusal_of(text), "my.json:2: there is a NUL byte; this is not a text file");
  }
}

TEST(Document, SaysWhatIsWrongWithTheText) {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"", "my.json:1: the document is empty"},
      {" // nothing\n", "my.json:1: the document is empty"},
      {"{", "my.json:1: expected a key in double quotes or \"}\", got the end of the document"},
      {"{\"a\": 1\n \"b\": 2}", "my.json:2: expected \",\" or \"}\", got \"\\\"b\\\"\""},
      {"{\"a\" 1}", "my.json:1: expected \":\" after key \"a\", got \"1\""},
      {"{\"a\": }", "my.json:1: expected a value for key \"a\", got \"}\""},
      {"{\"a\":", "my.json:1: expected a value for key \"a\", got the end of the document"},
      {"{\"a\": 1,\n}", "my.json:1: the last comma before \"}\" must go"},
      {"[1,\n2,\n]", "my.json:2: the last comma before \"]\" must go"},
      {"[1 2]", "my.json:1: expected \",\" or \"]\", got \"2\""},
      {"[1,", "my.json:1: expected a value, got the end of the document"},
      {"[", "my.json:1: expected a value or \"]\", got the end of the document"},
      {"{\"a\": [1, 2}", "my.json:1: expected \",\" or \"]\", got \"}\""},
      {"{a: 1}", "my.json:1: expected a key in double quotes or \"}\", got \"a\""},
      {"{\"a\": 1, b: 2}", "my.json:1: expected a key in double quotes, got \"b\""},
      {"{\"a\": adamw}",
       "my.json:1: expected a value for key \"a\", got \"adamw\"; text needs double quotes"},
      {"{\"a\": 'x'}",
       "my.json:1: expected a value for key \"a\", got \"'x'\"; text needs double quotes"},
      {"{\"a\": True}", "my.json:1: expected a value for key \"a\", got \"True\"; write true"},
      {"{\"a\": .5}",
       "my.json:1: expected a value for key \"a\", got \".5\"; numbers are written like 5, -0.5 or "
       "1e-3"},
      {"[-]",
       "my.json:1: expected a value or \"]\", got \"-\"; numbers are written like 5, -0.5 or "
       "1e-3"},
      {"[01]", "my.json:1: expected \",\" or \"]\", got \"1\""},
      {"[1e999]", "my.json:1: number \"1e999\" does not fit a 64-bit float"},
      {"{} {}", "my.json:1: expected the end of the document, got \"{\""},
      {"[\"a\nb\"]", "my.json:1: this text has no closing quote on its line"},
      {"[\"a", "my.json:1: this text has no closing quote on its line"},
      {"{\"a: 1}", "my.json:1: this text has no closing quote on its line"},
      {"[\"a\tb\"]",
       "my.json:1: broken text: control character U+0009 (HT) must be escaped to \\u0009 or \\t"},
      {"[\"C:\\data\"]", "my.json:1: broken text: forbidden character after backslash"},
      {"[\"\\u12\"]", "my.json:1: broken text: '\\u' must be followed by 4 hex digits"},
      {"[1, /* never\nclosed ]", "my.json:1: this comment is never closed"},
      {"[1, / 2]", "my.json:1: expected a comment after \"/\""},
      {"{\"a\": \"b\xE4r\"}", "my.json:1: is not UTF-8 text (byte 0xE4); save the file as UTF-8"},
      {"// caf\xE9\n{}", "my.json:1: is not UTF-8 text (byte 0xE9); save the file as UTF-8"},
  };
  for (const Case& wrong : cases) {
    EXPECT_EQ(refusal_of(wrong.text), wrong.message) << wrong.text;
  }
}

TEST(Document, RefusesEveryKindOfBrokenUtf8) {
  for (const std::string_view bytes :
       {"\x80", "\xC0\xAF", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xFF"}) {
    EXPECT_NE(refusal_of("[\"" + std::string(bytes) + "\"]").find("is not UTF-8 text"),
              std::string::npos);
  }
  for (const std::string_view text : {"\xC2\x80", "€", "\xED\x9F\xBF", "😀", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(refusal_of("[\"" + std::string(text) + "\"]"), "accepted");
  }
}

TEST(Document, ReportsEveryDuplicateKeyWithBothLines) {
  EXPECT_EQ(refusal_of("{\"a\": 1,\n\"b\": {\"c\": 1, \"c\": 2},\n\"a\": 2,\n \"x/y\": 1}"),
            "my.json:2: /b/c: key \"c\" appears twice on this line; remove one\n"
            "my.json:3: /a: key \"a\" appears twice, on lines 1 and 3; remove one");
  EXPECT_EQ(refusal_of("{\"a\": 1,\n\"a\": 2 oops}"),
            "my.json:2: /a: key \"a\" appears twice, on lines 1 and 2; remove one\n"
            "my.json:2: expected \",\" or \"}\", got \"oops\"");
}

TEST(Document, IsBoundedInDepthAndSize) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_EQ(refusal_of(nested(64)), "accepted");
  EXPECT_EQ(refusal_of(nested(65)), "my.json:1: is nested more than 64 levels deep");
  EXPECT_EQ(refusal_of(nested(1000000)), "my.json:1: is nested more than 64 levels deep");
  EXPECT_EQ(refusal_of(std::string(Document::kMaxBytes + 1, ' ')),
            "my.json: is 8.0 MiB; a document has at most 8.0 MiB");

  std::string many = "{";
  for (int i = 0; i < 1000; ++i)
    many += "\"a\": 1, ";
  many += "\"a\": 1}";
  try {
    Document::parse(many, "my.json");
    FAIL();
  } catch (const DocumentError& error) {
    EXPECT_EQ(error.problems().size(), 100U);
  }
}

TEST(Document, NeverFailsInAnyOtherWayThanWithASentence) {
  const std::string text =
      "{\"a\": [1, -2.5e3, true, {\"b\\n\": \"x\"}], // c\n \"d\": null, /* e */ \"f\": \"é\"}";
  RandomBits bits(1);
  for (int i = 0; i < 20000; ++i) {
    std::string broken = text;
    for (std::uint64_t edits = 1 + bits.below(3); edits > 0; --edits) {
      const std::size_t at = bits.below(broken.size());
      switch (bits.below(3)) {
        case 0:
          broken.erase(at, 1 + bits.below(4));
          break;
        case 1:
          broken[at] = static_cast<char>(bits.below(256));
          break;
        default:
          broken.insert(at, 1, "{}[]\",:/*\\\n1e-."[bits.below(15)]);
      }
    }
    try {
      const auto document = Document::parse(broken, "my.json");
      EXPECT_GE(document->place_of("/a/0").line, 1);
    } catch (const DocumentError& error) {
      ASSERT_FALSE(error.problems().empty());
      for (const Problem& problem : error.problems()) {
        EXPECT_GE(problem.place.line, 1) << broken;
        EXPECT_EQ(problem.message.find("json.exception"), std::string::npos) << broken;
        EXPECT_EQ(problem.message.find("syntax error"), std::string::npos) << broken;
      }
    }
  }
}

class DocumentFile : public testing::Test {
 protected:
  DocumentFile()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("document_test." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~DocumentFile() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(DocumentFile, IsReadWithItsFolder) {
  std::ofstream(folder_ / "a.json") << "{\"x\": 1}";

  const auto document = Document::read(folder_ / "a.json");

  EXPECT_EQ(document->value()["x"], 1);
  EXPECT_EQ(document->folder(), folder_);
  EXPECT_EQ(document->file(), (folder_ / "a.json").string());
}

TEST_F(DocumentFile, SaysWhyItCannotBeRead) {
  const std::string file = (folder_ / "b.json").string();
  EXPECT_EQ(failure_of([&] { Document::read(file); }), file + ": no such file");
  EXPECT_EQ(failure_of([&] { Document::read("no-such-folder/b.json"); }),
            "no-such-folder/b.json: no such file");
  EXPECT_EQ(failure_of([&] { Document::read(folder_); }),
            folder_.string() + ": is a folder; expected a JSON document");
  EXPECT_EQ(failure_of([&] { Document::read(file); }).find("json.exception"), std::string::npos);
  std::ofstream(file) << std::string(Document::kMaxBytes + 1, ' ');
  EXPECT_EQ(failure_of([&] { Document::read(file); }),
            file + ": is larger than 8.0 MiB, the most that a document may have");
  if (::geteuid() != 0) {
    std::filesystem::permissions(file, std::filesystem::perms::none);
    EXPECT_EQ(failure_of([&] { Document::read(file); }),
              file + ": cannot be read: Permission denied");
  }
}

TEST(DocumentFromJson, HasNoPlaces) {
  const auto document = Document::from_json({{"a", 1}}, "/data");

  EXPECT_EQ(document->place_of("/a").text(), "");
  EXPECT_EQ(document->folder(), "/data");
  EXPECT_TRUE(Document::from_json({})->folder().is_absolute());
}

std::shared_ptr<Document> sample() {
  return Document::parse(
      "{\"optimizer\": {\"use\": \"sgd\",\n \"learning_rate\": 0.1},\n"
      " \"metrics\": [\"accuracy\", {\"use\": \"f1\"}],\n \"seed\": 1}",
      "my.json");
}

TEST(DocumentSet, ReadsTheTextAsJsonWhereItIs) {
  const auto document = sample();
  document->set("optimizer.learning_rate", "0.003");
  document->set("optimizer.use", "adamw");
  document->set("optimizer.nesterov", "true");
  document->set("optimizer.betas", "[0.9, 0.99]");
  document->set("name", "\"7\"");
  document->set("tag", "01");
  document->set("empty", "");
  document->set("odd", "[1, ");

  EXPECT_EQ(document->value()["optimizer"], json::parse(R"({"use": "adamw", "learning_rate": 0.003,
                                                  "nesterov": true, "betas": [0.9, 0.99]})"));
  EXPECT_EQ(document->value()["name"], "7");
  EXPECT_EQ(document->value()["tag"], "01");
  EXPECT_EQ(document->value()["empty"], "");
  EXPECT_EQ(document->value()["odd"], "[1, ");
}

TEST(DocumentSet, MakesWhatIsMissing) {
  const auto document = sample();
  document->set("training.early_stopping.patience", "10ep");
  document->set("metrics.0.average", "macro");
  document->set("metrics.1.average", "micro");
  document->set("metrics.2", "auc");
  document->set("transforms", "[]");
  document->set("transforms.0.use", "standardize");
  document->set("/extensions/a.b", "1");

  EXPECT_EQ(document->value()["training"],
            json::parse(R"({"early_stopping": {"patience": "10ep"}})"));
  EXPECT_EQ(document->value()["metrics"], json::parse(R"([{"use": "accuracy", "average": "macro"},
                            {"use": "f1", "average": "micro"}, "auc"])"));
  EXPECT_EQ(document->value()["transforms"], json::parse(R"([{"use": "standardize"}])"));
  EXPECT_EQ(document->value()["extensions"]["a.b"], 1);
}

TEST(DocumentSet, FindsKeysThatHaveDots) {
  const auto document = Document::parse(
      R"({"space": {"optimizer.learning_rate": {"uniform": [0, 1]}, "a.b": 1, "a": {"b": 2}}})",
      "my.json");

  document->set("space.optimizer.learning_rate.uniform", "[0, 2]");
  document->set("space.a.b", "3");
  document->set("/space/model/width", "4");

  EXPECT_EQ(document->value(), json::parse(R"({"space": {
      "optimizer.learning_rate": {"uniform": [0, 2]}, "a.b": 1, "a": {"b": 3},
      "model": {"width": 4}}})"));
}

TEST(DocumentSet, MovesThePlaceOfWhatItWroteAndNothingElse) {
  const auto document = sample();
  document->set("optimizer.learning_rate", "0.003");
  document->set("training.early_stopping.patience", "10ep");
  document->set("metrics.0.average", "macro");

  EXPECT_EQ(document->place_of("/optimizer/learning_rate").text(),
            "--set optimizer.learning_rate=0.003");
  EXPECT_EQ(document->place_of("/optimizer/use").text(), "my.json:1");
  EXPECT_EQ(document->place_of("/training").text(), "--set training.early_stopping.patience=10ep");
  EXPECT_EQ(document->place_of("/metrics/0/average").text(), "--set metrics.0.average=macro");
  EXPECT_EQ(document->place_of("/metrics/0/use").text(), "my.json:3");

  document->set("optimizer", "{\"use\": \"adam\"}");
  EXPECT_EQ(document->place_of("/optimizer/learning_rate").text(),
            "--set optimizer={\"use\": \"adam\"}");
}

TEST(DocumentSet, RemovesAValueByNull) {
  const auto document = sample();
  document->set("seed", "null");
  EXPECT_FALSE(document->value().contains("seed"));
  document->set("sed", "null");  // a typing error is one
  EXPECT_EQ(document->value().at("sed"), json());
}

TEST(DocumentSet, RefusesWhatCannotBeSet) {
  const auto document = sample();
  const json before = document->value();
  const auto refusal = [&](std::string_view path) {
    return failure_of([&] { document->set(path, "x"); });
  };

  EXPECT_EQ(refusal("seed.value"), "--set seed.value=x: \"seed\" is 1, which has no parts to set");
  EXPECT_EQ(refusal("metrics.first"),
            "--set metrics.first=x: \"metrics\" is an array: expected an index, got \"first\"");
  EXPECT_EQ(refusal("metrics.3"),
            "--set metrics.3=x: \"metrics\" has 2 elements: expected an index from 0 to 2, got 3");
  EXPECT_EQ(refusal("a..b"),
            "--set a..b=x: expected a path such as optimizer.learning_rate, got \"a..b\"");
  EXPECT_EQ(refusal(""), "--set =x: expected a path such as optimizer.learning_rate, got \"\"");
  EXPECT_EQ(refusal("new.a." + std::string("seed.")),
            "--set new.a.seed.=x: expected a path such as optimizer.learning_rate, got "
            "\"new.a.seed.\"");
  EXPECT_EQ(document->value(), before);
  EXPECT_EQ(document->place_of("/seed").text(), "my.json:4");
}

// The resolved document could not be written: JSON is UTF-8.
TEST(DocumentSet, RefusesBytesThatAreNotUtf8) {
  const auto document = sample();
  const json before = document->value();

  EXPECT_EQ(failure_of([&] { document->set("name", "\xff"); }),
            "--set name=\xEF\xBF\xBD: is not UTF-8 text");
  EXPECT_EQ(failure_of([&] { document->set("a\xff", "1"); }),
            "--set a\xEF\xBF\xBD=1: is not UTF-8 text");
  EXPECT_EQ(document->value(), before);
}

TEST(DocumentSet, CannotNestDeeperThanADocumentMay) {
  const auto document = sample();
  std::string path = "a";
  for (int i = 0; i < 63; ++i)
    path += ".a";
  EXPECT_NO_THROW(document->set(path, "1"));
  EXPECT_THROW(document->set(path + ".a", "1"), UsageError);
}

}  // namespace
}  // namespace treadle
