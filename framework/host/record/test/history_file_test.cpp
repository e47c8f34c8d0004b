#include <treadle/host/record/history_file.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HistoryFiles : public ::testing::Test {
 protected:
  HistoryFiles() {
    std::string pattern = (fs::temp_directory_path() / "treadle-history-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ / "history.csv";
  }
  ~HistoryFiles() override { fs::remove_all(folder_); }

  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }

  fs::path folder_;
  fs::path path_;
};

EpochSummary epoch(std::int64_t number, std::vector<MetricValue> metrics = {}) {
  EpochSummary row;
  row.epoch = number;
  row.epochs = 3;
  row.step = 10 * number;
  row.learning_rate = 0.1;
  row.train_loss = 1.0 / static_cast<double>(number + 2);
  row.val_loss = 0.5;
  row.metrics = std::move(metrics);
  row.best = number == 2;
  row.seconds = 0.25;
  return row;
}

std::vector<std::string> fits_of(const std::vector<HistoryRow>& rows) {
  std::vector<std::string> fits;
  for (const HistoryRow& row : rows)
    fits.push_back(row.fit + " " + std::to_string(row.epoch.epoch));
  return fits;
}

TEST_F(HistoryFiles, ReadBackWhatWasAdded) {
  EpochSummary row = epoch(2, {{"rmse", 1.0 / 3, Direction::kLowerIsBetter},
                               {"auc", Number::undefined("one class"), Direction::kNone},
                               {"r2", std::numeric_limits<double>::infinity(), Direction::kNone}});
  row.epochs.reset();
  row.logged = {{"gate", -1e-300, Direction::kNone}};
  row.decisions = {"lowered the rate", "stopped: no better, for long"};
  HistoryFile(path_).add("fold-1", row);

  const std::vector<HistoryRow> rows = HistoryFile::read(path_);

  ASSERT_EQ(rows.size(), 1U);
  const EpochSummary& got = rows[0].epoch;
  EXPECT_EQ(rows[0].fit, "fold-1");
  EXPECT_EQ(got.epoch, 2);
  EXPECT_FALSE(got.epochs);
  EXPECT_EQ(got.step, 20);
  EXPECT_EQ(got.train_loss, 0.25);
  EXPECT_EQ(*got.val_loss, 0.5);
  ASSERT_EQ(got.metrics.size(), 3U);
  EXPECT_EQ(got.metrics[0].value, 1.0 / 3) << "to the bit";
  EXPECT_TRUE(got.metrics[1].value.is_undefined());
  EXPECT_TRUE(std::isinf(got.metrics[2].value.value()));
  EXPECT_EQ(got.logged[0].value, -1e-300);
  EXPECT_THAT(got.decisions, ElementsAre("lowered the rate", "stopped: no better_ for long"));
  EXPECT_TRUE(got.best);
}

TEST_F(HistoryFiles, GrowByTheColumnsOfLaterRows) {
  HistoryFile file(path_);
  file.add("fold-1", epoch(1));
  file.add("fold-2", epoch(1, {{"rmse", 2, Direction::kLowerIsBetter}}));
  EXPECT_EQ(text(),
            "fit,epoch,epochs,step,learning_rate,train_loss,val_loss,rmse,best,seconds\n"
            "fold-1,1,3,10,0.1,0.3333333333333333,0.5,,0,0.25\n"
            "fold-2,1,3,10,0.1,0.3333333333333333,0.5,2,0,0.25\n");
}

TEST_F(HistoryFiles, AreInTheOrderOfFitsWhenFinished) {
  HistoryFile file(path_);
  for (const char* const fit : {"fold-2", "fold-1", "gone"}) {
    for (const std::int64_t number : {1, 2})
      file.add(fit, epoch(number));
  }
  file.finish({"fold-1", "fold-2"});
  EXPECT_THAT(fits_of(HistoryFile::read(path_)),
              ElementsAre("fold-1 1", "fold-1 2", "fold-2 1", "fold-2 2"));
  EXPECT_EQ(curves_of(HistoryFile::read(path_)).size(), 2U);
}

// A branch that no row of a fold took logs nothing: the other fold's rows come first, or are taken
// from a file whose columns are in the order in which they came.
TEST_F(HistoryFiles, HaveTheSameColumnsInWhateverOrderRowsCame) {
  EpochSummary whole = epoch(1);
  whole.logged = {{"entropy", 1}, {"load", 2}};
  EpochSummary part = epoch(1);
  part.logged = {{"load", 2}};
  const std::vector<std::string> fits{"fold-1", "fold-2"};
  HistoryFile in_order(path_);
  in_order.add("fold-1", whole);
  in_order.add("fold-2", part);
  const std::string record = in_order.text_of("fold-1", 1);
  in_order.finish(fits);
  const std::string expected = text();

  fs::remove(path_);
  HistoryFile other(path_);
  other.add("fold-2", part);
  other.add("fold-1", whole);
  EXPECT_EQ(other.text_of("fold-1", 1), record);
  HistoryFile again(path_);
  EXPECT_FALSE(again.restore("fold-1", record)) << "no row is lost";
  again.finish(fits);
  EXPECT_EQ(text(), expected);
}

TEST_F(HistoryFiles, GoOnBehindARowThatWasCutOffAnywhere) {
  HistoryFile(path_).add("final", epoch(1));
  const std::string whole = [&] {
    HistoryFile file(path_);
    file.add("final", epoch(2));
    return text();
  }();
  const std::size_t first = whole.rfind("final,2");
  for (std::size_t size = first; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    HistoryFile file(path_);
    file.add("final", epoch(2));
    EXPECT_EQ(text(), whole) << size;
  }
}

TEST_F(HistoryFiles, AreCutBackAndRestored) {
  HistoryFile file(path_);
  for (const std::int64_t number : {1, 2, 3})
    file.add("final", epoch(number));
  const std::string kept = file.text_of("final", 2);
  file.cut_back("final", 1);
  EXPECT_THAT(fits_of(HistoryFile::read(path_)), ElementsAre("final 1"));
  EXPECT_TRUE(file.restore("final", kept));
  EXPECT_FALSE(file.restore("final", kept)) << "nothing is lost";
  EXPECT_THAT(fits_of(HistoryFile::read(path_)), ElementsAre("final 1", "final 2"));
}

TEST_F(HistoryFiles, NameTheLineOfDamageOrPassItOver) {
  HistoryFile(path_).add("final", epoch(1));
  write(text() + "final,two,3,20,0.1,1,1,0,0\nfinal,3,3,30,0.1,1,1,0,0\n");
  try {
    HistoryFile::read(path_);
    FAIL() << "no error";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("history.csv:3: epoch is \"two\""));
  }
  EXPECT_THAT(fits_of(HistoryFile::read(path_, HistoryFile::Damage::kIsPassedOver)),
              ElementsAre("final 1", "final 3"));
  EXPECT_TRUE(HistoryFile::read(folder_ / "none.csv").empty());
}

}  // namespace
}  // namespace treadle
