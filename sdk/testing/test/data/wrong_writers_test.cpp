#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/quoted_text.h>
#include <treadle/testing/data/writer_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_writers {
namespace {

namespace fs = std::filesystem;

/// A file of fields, in memory until it is complete. A wrong one overrides its own mistake.
class Lines : public TableWriter {
 public:
  explicit Lines(const fs::path& folder) : path_(folder / "table.csv") {}

 protected:
  void do_open(const std::vector<Column>& columns) override {
    for (const Column& column : columns)
      text_ += csv_field(column.name) + ",";
    text_ += "\n";
  }
  void do_write(const std::vector<Values>& chunk, std::size_t rows) override {
    for (std::size_t row = 0; row < rows; ++row) {
      for (const Values& column : chunk)
        std::visit([&](const auto& values) { add(values[row]); }, column);
      text_ += "\n";
    }
  }
  void do_close() override { write_file_atomically(path_, text_); }

  void add(const std::string& text) { text_ += csv_field(text) + ","; }
  template <typename Number>
  void add(Number number) {
    text_ += std::to_string(number) + ",";
  }

  fs::path path_;
  std::string text_;
};

class OpensItsFileAtOnce final : public Lines {
 public:
  explicit OpensItsFileAtOnce(const fs::path& folder) : Lines(folder) {
    std::ofstream(path_, std::ios::app);
  }
};

class WritesAsItGoes final : public Lines {
 public:
  using Lines::Lines;

 private:
  void do_write(const std::vector<Values>& chunk, std::size_t rows) override {
    Lines::do_write(chunk, rows);
    write_file_atomically(path_, text_);
  }
};

class Appends final : public Lines {
 public:
  using Lines::Lines;

 private:
  void do_close() override {
    std::ofstream file(path_, std::ios::app);
    if (!(file << text_ << std::flush))
      throw StorageError(path_.string() + ": cannot be written");
  }
};

class KeepsTheLastPieceOnly final : public Lines {
 public:
  using Lines::Lines;

 private:
  void do_write(const std::vector<Values>& chunk, std::size_t rows) override {
    text_.clear();
    Lines::do_write(chunk, rows);
  }
};

class SaysNothingOfItsPlace final : public Lines {
 public:
  using Lines::Lines;

 private:
  void do_close() override { std::ofstream(path_) << text_; }
};

class RefusesOddNames final : public Lines {
 public:
  using Lines::Lines;

 private:
  void do_open(const std::vector<Column>& columns) override {
    for (const Column& column : columns) {
      if (column.name.empty() || column.name.find('"') != std::string::npos)
        throw StorageError("odd name");
    }
    Lines::do_open(columns);
  }
};

template <typename T>
WriterCase one(std::string name) {
  return {std::move(name), [](const fs::path& folder) { return std::make_unique<T>(folder); }};
}

std::vector<Wrong<WriterCase>> all() {
  return {{one<OpensItsFileAtOnce>("OpensItsFileAtOnce"), {"MakingOneTouchesNothing"}},
          {one<WritesAsItGoes>("WritesAsItGoes"), {"WithoutCloseWhatWasThereStays"}},
          {one<Appends>("Appends"), {"OtherRowsAreAnotherTable", "ATableMayComeInManyPieces"}},
          {one<KeepsTheLastPieceOnly>("KeepsTheLastPieceOnly"), {"ATableMayComeInManyPieces"}},
          {one<SaysNothingOfItsPlace>("SaysNothingOfItsPlace"), {"APlaceThatIsNotThereIsAnError"}},
          {one<RefusesOddNames>("RefusesOddNames"), {"TakesAnyNumberAndText"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, WriterContract, ::testing::Values(one<Lines>("Lines")), CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, WriterContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_writers

std::vector<Defect> writer_defects() {
  return defects_of("WriterContract", wrong_writers::all());
}

}  // namespace treadle::testing
